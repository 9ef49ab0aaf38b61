// The words between hvdrun attach and the host of a detached job, over ssh's stdin and stdout:
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
// A message is a frame of runtime/net, numbered from 1. Before the greeting a login shell may have
// said something. Pure.
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

// Another version of these words has another one.
inline constexpr const char* kViewerGreeting = "hvdrun-viewer 1\n";

struct JobThere {
  std::string name, id;
  LogPlace shown;  // up to where the host knows that the output was shown
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

// Makes the bytes of messages, in order.
class ViewerMessages {
 public:
  std::string Next(const ToViewer& message);
  std::string Next(const FromViewer& message);

 private:
  std::string Framed(const std::string& payload);
  uint64_t sent_ = 0;
};

// Cuts bytes into messages, whatever the pieces they arrive in.
template <typename Message>
class ViewerReader {
 public:
  void Append(std::string_view bytes) { frames_.Append(bytes); }
  // Nothing when more bytes are needed, kInvalidArgument when they are no such message, or not the
  // next one.
  Result<std::optional<Message>> Next();

 private:
  FrameReader frames_;
  uint64_t received_ = 0;
};

// A piece may come behind output that was shown up to `end`: nothing comes twice, and nothing is
// missing without a word.
Status CheckPiece(const OutputPiece& piece, LogPlace end);
LogPlace EndOf(const OutputPiece& piece);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_VIEWER_PROTOCOL_H_
