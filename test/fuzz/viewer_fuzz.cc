// Any bytes between hvdrun attach and the host of a job, in any pieces: they are messages, which
// encode to ones that say the same, or they are refused.
#include "launcher/detached/viewer_protocol.h"
#include "test/fuzz/seeds.h"

namespace {

using namespace hvd;

template <typename Message>
void Read(std::string_view bytes, size_t piece) {
  ViewerReader<Message> reader, again;
  ViewerMessages writer;
  LogPlace end;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.Append(bytes.substr(0, piece));
    while (true) {
      Result<std::optional<Message>> message = reader.Next();
      if (!message.ok()) return;
      if (!*message) break;
      again.Append(writer.Next(**message));
      Result<std::optional<Message>> same = again.Next();
      Must(same.ok() && *same && (*same)->index() == (*message)->index());
      if constexpr (std::is_same_v<Message, ToViewer>) {
        if (auto* text = std::get_if<OutputPiece>(&**message);
            text && CheckPiece(*text, end).ok()) {
          Must(EndOf(*text).offset >= end.offset + text->text.size());
          end = EndOf(*text);
        }
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  ViewerMessages to, from;
  std::string output = to.Next(JobThere{"train-1", "0123456789abcdef", {7, 1}});
  output += to.Next(OutputPiece{1, {7, 1}, "line\n"});
  output += to.Next(OutputPiece{0, {12, 2}, "x"});
  output += to.Next(JobOver{3, "reason"});
  std::string words = from.Next(ShowFrom{{1, 2}});
  words += from.Next(ShownUpTo{{3, 4}});
  words += from.Next(FromViewer(StopTheJob{}));
  WriteSeeds(*argc, *argv, {"\x01" + output, "\xff" + output, "\x07" + words, "\xff" + words});
  return 0;
}

// The first byte says how long the pieces are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  const size_t piece = 1 + static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  Read<ToViewer>(bytes, piece);
  Read<FromViewer>(bytes, piece);
  return 0;
}
