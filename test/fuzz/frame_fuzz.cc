// Any bytes, in any pieces: the frame reader and the stream above it take them or refuse them,
// never crash; bytes that the reader takes it writes back as they are.
#include "runtime/net/frame.h"
#include "runtime/net/stream.h"
#include "test/fuzz/seeds.h"

namespace {

using namespace hvd;

std::string Conversation() {
  Stream sender({.job = 7});
  sender.Attach(TimePoint{});
  sender.SendControl("control");
  sender.SendLog("log");
  std::string bytes(sender.Outgoing());
  return bytes;
}

void ReadFrames(std::string_view bytes) {
  FrameReader reader;
  std::string written;
  reader.Append(bytes);
  while (true) {
    Result<std::optional<Frame>> frame = reader.Next();
    if (!frame.ok() || !frame->has_value()) break;
    Must((*frame)->payload.size() <= kMaxFramePayload);
    AppendFrame(written, (*frame)->header, (*frame)->payload);
  }
  Must(written.size() <= bytes.size());
}

// The first byte says how long the pieces are.
void Converse(std::string_view bytes) {
  if (bytes.empty()) return;
  size_t piece = 1 + static_cast<unsigned char>(bytes.front());
  Stream stream({.job = 7});
  stream.Attach(TimePoint{});
  stream.SendControl("mine");
  for (bytes.remove_prefix(1); !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    if (!stream.Receive(bytes.substr(0, piece), TimePoint{}).ok()) {
      stream.Detach();
      stream.Attach(TimePoint{});
    }
    while (std::optional<StreamMessage> message = stream.Next()) {
      if (message->log) stream.ReturnCredit(message->bytes.size());
    }
    stream.Consume(stream.Outgoing().size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::string conversation = Conversation();
  std::string log;
  AppendFrame(
      log, {.payload_bytes = 3, .type = FrameType::kLog, .job = 7, .generation = 1, .sequence = 1},
      "log");
  WriteSeeds(*argc, *argv,
             {conversation, "\x01" + conversation + log, "\xff" + conversation + conversation});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadFrames(bytes);
  Converse(bytes);
  return 0;
}
