// OutputSource: where the output of a detached job comes from: its files on this machine
// (follow.h), or a connection to the machine that has them (remote_output.h).
#ifndef HVD_LAUNCHER_DETACHED_OUTPUT_SOURCE_H_
#define HVD_LAUNCHER_DETACHED_OUTPUT_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "launcher/detached/detached_job.h"
#include "launcher/detached/log_store.h"

namespace hvd {

struct OutputPiece {
  uint64_t lost_lines = 0;  // missing before the text
  LogPlace begin;           // of the text
  std::string text;
};

inline constexpr size_t kMostPiece = 60 << 10;  // of text

class OutputSource {
 public:
  enum class Event {
    kPiece,
    kIdle,    // nothing new for a moment
    kEnded,   // the output is complete and the job has ended
    kBroken,  // the connection broke
  };

  virtual ~OutputSource() = default;
  // Gets the next piece; waits a moment if there is none.
  virtual Event Next(OutputPiece* piece) = 0;
  // The output up to `place` has been written to the viewer's descriptor.
  virtual void Shown(LogPlace place) = 0;
  // Like Ctrl-C in the terminal of its hvdrun.
  virtual void StopJob() = 0;
  virtual const std::string& job_name() const = 0;
  // After kEnded.
  virtual const DetachedEnd& end() const = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_OUTPUT_SOURCE_H_
