// The protocol between hvdrun attach and the host of a detached job, over ssh's stdin and stdout:
//
//   hvdrun attach JOB -H HOST                    hvdrun attach JOB --for-viewer, on HOST
//                               <--------------  the greeting, then JobThere
//   ShowFrom                    -------------->
//                               <--------------  OutputPiece, any number
//   ShownUpTo, any number       -------------->  recorded
//   StopTheJob                  -------------->
//                               <--------------  JobOver, when the output is over
//   ShownUpTo, the last one, and the end of the stream
//                               -------------->  ends, with exit code 0, when it is recorded
//
// A message is a frame of runtime/net, numbered from 1. A login shell may have printed something
// before the greeting. Pure.
#ifndef HVD_LAUNCHER_DETACHED_VIEWER_PROTOCOL_H_
#define HVD_LAUNCHER_DETACHED_VIEWER_PROTOCOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "launcher/detached/log_store.h"
#include "launcher/detached/output_source.h"
#include "runtime/base/status.h"
#include "runtime/net/frame.h"

namespace hvd {

// Changes with the version of the protocol.
inline constexpr const char* kViewerGreeting = "hvdrun-viewer 1\n";

struct JobThere {
  std::string name, id;
  LogPlace shown;  // how much the host has recorded as shown
};
struct JobOver {
  int32_t exit_code = 0;
  std::string reason;  // as in DetachedEnd
};
using ToViewer = std::variant<JobThere, OutputPiece, JobOver>;

struct ShowFrom {
  LogPlace place;
};
struct ShownUpTo {
  LogPlace place;
};
struct StopTheJob {};
using FromViewer = std::variant<ShowFrom, ShownUpTo, StopTheJob>;

// Encodes messages, in order.
class ViewerMessages {
 public:
  std::string Next(const ToViewer& message);
  std::string Next(const FromViewer& message);

 private:
  std::string Framed(const std::string& payload);
  uint64_t sent_ = 0;
};

// Splits a byte stream into messages.
template <typename Message>
class ViewerReader {
 public:
  void Append(std::string_view bytes) { frames_.Append(bytes); }
  // Nothing if more bytes are needed; kInvalidArgument for an invalid message or a wrong number.
  Result<std::optional<Message>> Next();

 private:
  FrameReader frames_;
  uint64_t received_ = 0;
};

// Checks that `piece` continues output that ends at `end`: no byte repeats, and none is missing
// unless counted as lost.
Status CheckPiece(const OutputPiece& piece, LogPlace end);
LogPlace EndOf(const OutputPiece& piece);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_VIEWER_PROTOCOL_H_
