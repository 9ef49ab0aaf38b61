#include "runtime/core/request/message.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/align.h"

namespace hvd {
namespace {

// More than this in one message is a bug of the sender.
constexpr uint64_t kLargestMessage = 1ull << 36;

Status Damaged() { return InvalidArgument("a damaged request"); }

bool TravelsInHead(const BufferDescriptor& descriptor) {
  return !descriptor.payload.empty() && descriptor.payload.size() <= sizeof MessageHead::words;
}

void Append(std::byte** at, const void* bytes, size_t count) {
  if (count != 0) std::memcpy(*at, bytes, count);
  *at += count;
}

}  // namespace

size_t BytesOf(const OutgoingRequest& request) {
  size_t bytes = sizeof(MessageHead) + RoundUp(request.detail.size(), 8);
  if (!TravelsInHead(*request.first)) bytes += request.first->payload.size();
  for (const BufferDescriptor& descriptor : request.more)
    bytes += sizeof(MoreDescriptors) + descriptor.payload.size();
  return bytes;
}

void Write(const OutgoingRequest& request, std::span<std::byte> place) {
  const BufferDescriptor& first = *request.first;
  // Written in place: a copy that soon reads the record in wider words than it was written in would
  // stall.
  MessageHead& head = *new (place.data()) MessageHead;
  head.kind = MessageKind::kRequest;
  head.name_id = request.name_id;
  head.detail_bytes = static_cast<uint32_t>(request.detail.size());
  head.more_descriptors = static_cast<uint16_t>(request.more.size());
  std::span<const std::byte> payload = first.payload;
  head.tiny_bytes = 0;
  std::copy(first.words.begin(), first.words.end(), head.words);
  if (TravelsInHead(first)) {
    // The words of a descriptor with a payload are unused.
    std::memcpy(head.words, payload.data(), payload.size());
    head.tiny_bytes = static_cast<uint8_t>(payload.size());
    payload = {};
  }
  head.payload_bytes = static_cast<uint32_t>(payload.size());
  std::byte* at = place.data() + sizeof head;
  Append(&at, request.detail.data(), request.detail.size());
  at += RoundUp(request.detail.size(), 8) - request.detail.size();
  for (const BufferDescriptor& descriptor : request.more) {
    MoreDescriptors more{};
    std::copy(descriptor.words.begin(), descriptor.words.end(), more.words);
    more.payload_bytes = descriptor.payload.size();
    Append(&at, &more, sizeof more);
  }
  Append(&at, payload.data(), payload.size());
  for (const BufferDescriptor& descriptor : request.more)
    Append(&at, descriptor.payload.data(), descriptor.payload.size());
}

Status Read(std::span<const std::byte> message, IncomingRequest* request) {
  MessageHead& head = request->head;
  if (message.size() < sizeof head) return Damaged();
  std::memcpy(&head, message.data(), sizeof head);
  message = message.subspan(sizeof head);
  const size_t detail = RoundUp(head.detail_bytes, 8);
  const size_t descriptors = size_t{head.more_descriptors} * sizeof(MoreDescriptors);
  const bool tiny_fits = head.tiny_bytes <= sizeof head.words;
  if (head.kind != MessageKind::kRequest || detail + descriptors > message.size() || !tiny_fits) {
    return Damaged();
  }
  request->detail = {reinterpret_cast<const char*>(message.data()), head.detail_bytes};
  request->descriptors = message.subspan(detail, descriptors);
  request->payloads = message.subspan(detail + descriptors);
  uint64_t payload = head.payload_bytes;
  for (size_t i = 0; i < head.more_descriptors; ++i) {
    MoreDescriptors more;
    std::memcpy(&more, request->descriptors.data() + i * sizeof more, sizeof more);
    if (more.payload_bytes > kLargestMessage) return Damaged();
    payload += more.payload_bytes;
  }
  return payload == request->payloads.size() ? Status::Ok() : Damaged();
}

bool IsPayloadOnly(std::span<const std::byte> message, size_t payload_bytes,
                   std::span<const std::byte>* payload) {
  const bool tiny = payload_bytes <= sizeof MessageHead::words;
  const size_t behind = tiny ? 0 : payload_bytes;
  if (message.size() != sizeof(MessageHead) + behind) return false;
  struct {
    uint32_t name_id, detail_bytes, payload_bytes;
    MessageKind kind;
    uint8_t tiny_bytes;
    uint16_t more_descriptors;
  } head;
  static_assert(sizeof head == offsetof(MessageHead, words));
  std::memcpy(&head, message.data(), sizeof head);
  *payload = tiny ? message.subspan(offsetof(MessageHead, words), payload_bytes)
                  : message.subspan(sizeof(MessageHead));
  return head.kind == MessageKind::kRequest && head.detail_bytes == 0 &&
         head.more_descriptors == 0 && head.payload_bytes == behind &&
         head.tiny_bytes == (tiny ? payload_bytes : 0);
}

void ReadDescriptors(const IncomingRequest& request, BufferDescriptor* first,
                     RecordVector<BufferDescriptor>* more) {
  const MessageHead& head = request.head;
  std::copy(std::begin(head.words), std::end(head.words), first->words.begin());
  if (head.tiny_bytes != 0) {
    first->payload = std::as_bytes(std::span(first->words)).first(head.tiny_bytes);
  } else {
    first->payload = request.payloads.first(head.payload_bytes);
  }
  if (head.more_descriptors == 0 && more->empty()) return;
  more->resize(head.more_descriptors);
  size_t at = head.payload_bytes;
  for (size_t i = 0; i < more->size(); ++i) {
    MoreDescriptors each;
    std::memcpy(&each, request.descriptors.data() + i * sizeof each, sizeof each);
    BufferDescriptor& descriptor = (*more)[i];
    std::copy(std::begin(each.words), std::end(each.words), descriptor.words.begin());
    descriptor.payload = request.payloads.subspan(at, each.payload_bytes);
    at += each.payload_bytes;
  }
}

Status Assembly::Add(const MessageHead& head, std::span<const std::byte> piece) {
  if (head.words[1] == 0) {
    Clear();
    total_ = head.words[0];
  }
  const bool follows = head.words[0] == total_ && head.words[1] == bytes_.size();
  if (!follows || total_ > kLargestMessage || piece.empty() ||
      piece.size() > total_ - bytes_.size()) {
    return Damaged();
  }
  bytes_.insert(bytes_.end(), piece.begin(), piece.end());
  return Status::Ok();
}

void Assembly::Clear() {
  bytes_ = {};
  total_ = 0;
}

}  // namespace hvd
