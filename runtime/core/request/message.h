// Message: the encoding of a request between ranks.
//
// Layout: a head; the detail if any, padded to 8 bytes; the descriptors of the tensors of a group
// after the first; the payloads of all tensors, concatenated. With the frame of the stream the head
// fills one cache line, so that a tiny tensor costs one line. A message too large for one record is
// sent in pieces.
#ifndef HVD_RUNTIME_CORE_REQUEST_MESSAGE_H_
#define HVD_RUNTIME_CORE_REQUEST_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/base/record_memory.h"
#include "runtime/base/status.h"

namespace hvd {

enum class MessageKind : uint8_t {
  kRequest = 0,
  kPiece = 1,  // words: bytes of the whole message, offset of this piece; the payload is the piece
  kAbort = 2,  // the world is broken; the payload is the reason
};

struct MessageHead {
  uint32_t name_id;        // the sender's number for the name; a detail (re)defines it
  uint32_t detail_bytes;   // 0: unchanged
  uint32_t payload_bytes;  // of the first tensor, after the detail and the descriptors
  MessageKind kind;
  uint8_t tiny_bytes;         // size of a payload sent in `words`; payload_bytes is then 0
  uint16_t more_descriptors;  // tensors after the first
  uint64_t words[4];          // the descriptor of the first tensor, or its tiny payload
};
static_assert(sizeof(MessageHead) == 48);

struct MoreDescriptors {
  uint64_t words[4];
  uint64_t payload_bytes;
};
static_assert(sizeof(MoreDescriptors) == 40);

// A request to encode. `first` is never null.
struct OutgoingRequest {
  uint32_t name_id = 0;
  std::string_view detail;
  const BufferDescriptor* first = nullptr;
  std::span<const BufferDescriptor> more;
};

size_t BytesOf(const OutgoingRequest& request);
// `place` has BytesOf(request) bytes.
void Write(const OutgoingRequest& request, std::span<std::byte> place);

// A decoded request: views into the message.
struct IncomingRequest {
  MessageHead head;
  std::string_view detail;
  std::span<const std::byte> descriptors;  // MoreDescriptors, unaligned
  std::span<const std::byte> payloads;     // of all tensors
};

// kInvalidArgument for anything Write does not produce.
Status Read(std::span<const std::byte> message, IncomingRequest* request);

// True for a request of one tensor without a detail whose payload has `payload_bytes` bytes;
// *payload is then a view of it in the message.
bool IsPayloadOnly(std::span<const std::byte> message, size_t payload_bytes,
                   std::span<const std::byte>* payload);
// The name_id of a request.
inline uint32_t NumberIn(std::span<const std::byte> message) {
  uint32_t number;
  std::memcpy(&number, message.data() + offsetof(MessageHead, name_id), sizeof number);
  return number;
}

// Stores the first tensor's descriptor in *first, the others in *more. Payloads are views into the
// message, except a tiny one, which is a view into *first itself.
void ReadDescriptors(const IncomingRequest& request, BufferDescriptor* first,
                     RecordVector<BufferDescriptor>* more);

// A message that arrives in pieces. A sender may stop in the middle: the next first piece starts
// over.
class Assembly {
 public:
  // kInvalidArgument for a piece that does not follow the previous one.
  Status Add(const MessageHead& head, std::span<const std::byte> piece);
  bool complete() const { return total_ != 0 && bytes_.size() == total_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  void Clear();

 private:
  std::vector<std::byte> bytes_;
  size_t total_ = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_CORE_REQUEST_MESSAGE_H_
