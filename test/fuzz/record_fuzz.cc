// Any bytes as a request of a peer, whole or in pieces: refused, or every view of it lies inside
// what came.
#include <algorithm>
#include <cstring>

#include "runtime/core/request/message.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

// Reads every byte of it, so that AddressSanitizer sees one too many.
volatile std::byte seen{};
void Touch(std::span<const std::byte> bytes) {
  for (std::byte b : bytes) seen = b;
}

void ReadRequest(std::span<const std::byte> message) {
  IncomingRequest request;
  if (!Read(message, &request).ok()) return;
  Touch(std::as_bytes(std::span(request.detail)));
  Touch(request.payloads);
  BufferDescriptor first;
  RecordVector<BufferDescriptor> more;
  ReadDescriptors(request, &first, &more);
  Touch(first.payload);
  size_t bytes = request.head.tiny_bytes != 0 ? 0 : first.payload.size();
  for (const BufferDescriptor& descriptor : more) {
    Touch(descriptor.payload);
    bytes += descriptor.payload.size();
  }
  Must(request.head.tiny_bytes != 0 || bytes == request.payloads.size());
}

// Pieces of the length that the first byte says, under heads that follow each other and some that
// do not.
void ReadPieces(std::span<const std::byte> bytes) {
  Assembly assembly;
  MessageHead head{};
  head.kind = MessageKind::kPiece;
  const size_t step = 1 + std::to_integer<size_t>(bytes[0]);
  for (size_t at = 0; at < bytes.size(); at += step) {
    std::span<const std::byte> piece = bytes.subspan(at, std::min(step, bytes.size() - at));
    head.words[0] = bytes.size();
    head.words[1] = piece[0] == std::byte{0xff} ? 0 : at;
    if (!assembly.Add(head, piece).ok()) return;
    Must(assembly.bytes().size() <= bytes.size());
    if (!assembly.complete()) continue;
    ReadRequest(assembly.bytes());
    assembly.Clear();
  }
}

std::string Written(const OutgoingRequest& request) {
  std::string bytes(BytesOf(request), '\0');
  Write(request, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string data(100, 'd');
  BufferDescriptor tiny, large, lent;
  tiny.payload = std::as_bytes(std::span(data)).first(20);
  large.payload = std::as_bytes(std::span(data));
  lent.words = {1, 2, 3, 4};
  const std::vector<BufferDescriptor> more = {large, lent};
  WriteSeeds(*argc, *argv,
             {Written({1, "", &tiny, {}}), Written({2, "detail", &large, {}}),
              Written({3, "detail of a group", &lent, more}), std::string(300, '\x7f')});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (bytes.empty()) return 0;
  ReadRequest(bytes);
  ReadPieces(bytes);
  return 0;
}
