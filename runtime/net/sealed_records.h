// Sealed records: encrypt and authenticate one connection between agents, once both ends have
// proven the job's key (mesh_handshake.h). Bytes go over the wire as records,
//
//   length (4 bytes, of the sealed bytes) | sealed bytes | tag (16 bytes)
//
// by AES-256-GCM. Each direction of each connection has its own key, the nonce is the record's
// index in its direction, and the tag covers the length, too. So a record that was changed,
// dropped, repeated, reordered, truncated, sent back to its sender or taken from another connection
// does not open.
//
// One thread at a time for each object. No descriptors: bytes go in and out.
#ifndef HVD_RUNTIME_NET_SEALED_RECORDS_H_
#define HVD_RUNTIME_NET_SEALED_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

struct evp_cipher_ctx_st;  // of OpenSSL

namespace hvd {

// The most bytes in one record.
inline constexpr size_t kMostRecordBytes = 16 * 1024;
// The overhead of a record in bytes.
inline constexpr size_t kRecordOverhead = 4 + 16;
// The size of a key.
inline constexpr size_t kRecordKeyBytes = 32;

// A key and the number of the next record.
class RecordCipher {
 public:
  // `key`: kRecordKeyBytes, for one direction of one connection only.
  RecordCipher(std::string_view key, bool seals);
  RecordCipher(RecordCipher&&) = default;
  RecordCipher& operator=(RecordCipher&&) = default;

  // Writes as many bytes as `in` has, and writes or checks the tag. False: the record is not
  // genuine, or libcrypto failed.
  bool Run(std::string_view header, std::string_view in, char* out, char* tag);

 private:
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;  // none: libcrypto has no such cipher
  bool seals_;
  uint64_t next_ = 0;
};

class RecordSealer {
 public:
  explicit RecordSealer(std::string_view key) : cipher_(key, true) {}
  // Appends `plain` to `wire`, in as many records as needed. kInternal: libcrypto failed; send
  // nothing more.
  Status Seal(std::string_view plain, std::string& wire);

 private:
  RecordCipher cipher_;
};

class RecordOpener {
 public:
  explicit RecordOpener(std::string_view key) : cipher_(key, false) {}
  // Takes bytes of the connection in any pieces; appends the plain bytes of complete records to
  // `plain`. kInvalidArgument: the next record is not what its sender sealed; nothing opens from
  // here on.
  Status Open(std::string_view wire, std::string& plain);

 private:
  RecordCipher cipher_;
  std::string held_;  // of an incomplete record: at most kMostRecordBytes + kRecordOverhead
  bool broken_ = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_SEALED_RECORDS_H_
