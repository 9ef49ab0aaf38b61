#include "launcher/detached/viewer_protocol.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/net/fields.h"

namespace hvd {

void Fields(auto& f, MaybeConst<LogPlace> auto& m) { f(m.offset, m.line); }
void Fields(auto& f, MaybeConst<JobThere> auto& m) { f(m.name, m.id, m.shown); }
void Fields(auto& f, MaybeConst<OutputPiece> auto& m) { f(m.lost_lines, m.begin, m.text); }
void Fields(auto& f, MaybeConst<JobOver> auto& m) { f(m.exit_code, m.reason); }
void Fields(auto& f, MaybeConst<ShowFrom> auto& m) { f(m.place); }
void Fields(auto& f, MaybeConst<ShownUpTo> auto& m) { f(m.place); }
void Fields(auto&, MaybeConst<StopTheJob> auto&) {}

std::string ViewerMessages::Framed(const std::string& payload) {
  std::string bytes;
  AppendFrame(bytes, {.type = FrameType::kControl, .sequence = ++sent_}, payload);
  return bytes;
}

std::string ViewerMessages::Next(const ToViewer& message) { return Framed(EncodeMessage(message)); }
std::string ViewerMessages::Next(const FromViewer& message) {
  return Framed(EncodeMessage(message));
}

template <typename Message>
Result<std::optional<Message>> ViewerReader<Message>::Next() {
  Result<std::optional<Frame>> frame = frames_.Next();
  if (!frame.ok()) return frame.status();
  if (!*frame) return std::optional<Message>();
  if ((*frame)->header.type != FrameType::kControl || (*frame)->header.sequence != received_ + 1)
    return InvalidArgument("a message is missing");
  ++received_;
  Result<Message> message = DecodeMessage<Message>((*frame)->payload, "message of hvdrun attach");
  if (!message.ok()) return message.status();
  return std::optional<Message>(std::move(*message));
}

template class ViewerReader<ToViewer>;
template class ViewerReader<FromViewer>;

LogPlace EndOf(const OutputPiece& piece) {
  return {piece.begin.offset + piece.text.size(),
          piece.begin.line + static_cast<uint64_t>(std::ranges::count(piece.text, '\n'))};
}

Status CheckPiece(const OutputPiece& piece, LogPlace end) {
  if (piece.begin.offset > std::numeric_limits<uint64_t>::max() - piece.text.size())
    return InvalidArgument("output of a place that cannot be");
  if (piece.lost_lines == 0 ? piece.begin != end : piece.begin.offset < end.offset)
    return InvalidArgument(Format("output of the place {}, where that of {} comes next",
                                  piece.begin.offset, end.offset));
  return Status::Ok();
}

}  // namespace hvd
