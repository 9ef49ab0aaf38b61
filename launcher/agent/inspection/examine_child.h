// ExamineChild: the agent's side of finding out what its host has. A process of its own does the
// work (`hvdrun agent --examine`, host_inspection.h), because a file system may never answer: it
// prints its findings line by line, and the lines that came within the limit are the answer.
//
// Main thread of the agent only.
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_EXAMINE_CHILD_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_EXAMINE_CHILD_H_

#include <sys/types.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <string>

#include "launcher/process/spawn.h"
#include "launcher/wire/messages.h"

namespace hvd {

class ExamineChild final {
 public:
  // `done` is called once, later. The child's stdout is ours; the rest of `descriptors` is as
  // given.
  ExamineChild(asio::io_context& io, const ExamineHost& question, const std::string& job_id,
               SpawnDescriptors descriptors, std::function<void(const HostExam&)> done);
  ExamineChild(const ExamineChild&) = delete;

 private:
  void Read();
  void Finish();

  asio::posix::stream_descriptor output_;
  asio::steady_timer limit_;
  std::function<void(const HostExam&)> done_;
  pid_t pid_ = 0;
  std::array<char, 4096> buffer_;
  std::string text_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_EXAMINE_CHILD_H_
