// Sealed records: how the bytes of one connection between agents are kept secret and whole, once
// both ends have proven the job's key (mesh_handshake.h). Bytes go over the wire as records,
//
//   length (4 bytes, of the sealed bytes) | sealed bytes | tag (16 bytes)
//
// by AES-256-GCM. Each direction of each connection has a key of its own, the nonce is the place of
// the record in its direction, and the length is under the tag, too. So a record that was changed,
// left out, repeated, put elsewhere, cut short, sent back to its sender or taken from another
// connection does not open.
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

// Of the bytes in one record, at most.
inline constexpr size_t kMostRecordBytes = 16 * 1024;
// The bytes that a record adds to its own.
inline constexpr size_t kRecordOverhead = 4 + 16;
// Of a key.
inline constexpr size_t kRecordKeyBytes = 32;

// A key with the number of the next record.
class RecordCipher {
 public:
  // `key`: kRecordKeyBytes, for one direction of one connection and nothing else.
  RecordCipher(std::string_view key, bool seals);
  RecordCipher(RecordCipher&&) = default;
  RecordCipher& operator=(RecordCipher&&) = default;

  // The same number of bytes, and the tag is written or checked. False: the record is not genuine,
  // or libcrypto failed.
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
  // Appends `plain` to `wire`, in as many records as it takes. kInternal: libcrypto failed; nothing
  // may be sent any more.
  Status Seal(std::string_view plain, std::string& wire);

 private:
  RecordCipher cipher_;
};

class RecordOpener {
 public:
  explicit RecordOpener(std::string_view key) : cipher_(key, false) {}
  // Bytes of the connection in, in any pieces; appends to `plain` those of the records that are
  // whole. kInvalidArgument: the next one is not what its sender sealed, and nothing opens from
  // here on.
  Status Open(std::string_view wire, std::string& plain);

 private:
  RecordCipher cipher_;
  std::string held_;  // of a record that is not whole: at most kMostRecordBytes + kRecordOverhead
  bool broken_ = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_SEALED_RECORDS_H_
