// HostQuestions: answers the questions of a driver, or hvdrun doctor, about this host before a job
// starts: its time, the command, the hosts that it reaches, its resources, its speed to others.
//
// One thread, that of the io_context; the probes have their own threads, which end with StopProbes.
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_HOST_QUESTIONS_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_HOST_QUESTIONS_H_

#include <sys/types.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "launcher/agent/inspection/connectivity_probe.h"
#include "launcher/agent/inspection/pair_probe.h"
#include "launcher/process/spawn.h"
#include "launcher/wire/messages.h"

namespace hvd {

// Examines the host in a child process (`hvdrun agent --examine`, host_inspection.h), because a
// file system may hang: the lines that it prints within the limit are the answer.
class ExamineChild final {
 public:
  // `done` is called once, later. Replaces the child's stdout in `descriptors`.
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

class HostQuestions {
 public:
  HostQuestions(asio::io_context& io, std::function<void(const ToDriver&)> send)
      : io_(io), send_(std::move(send)) {}

  void Answer(const LookAtCommand& question);
  void Answer(const AskTime& question);
  // Call each once. `tree_record`: where other agents connect to this one.
  void Answer(ProbeConnectivity question, std::string tree_record);
  void Answer(OpenProbe question);
  // Ignored without OpenProbe.
  void Answer(const MeasurePair& question);
  // Call once. The child gets these descriptors.
  void Answer(const ExamineHost& question, const std::string& job_id, SpawnDescriptors descriptors);

  bool probing() const { return connectivity_ != nullptr; }
  bool examining() const { return exam_ != nullptr; }
  // Passes in an entry that a probe requested.
  void GiveValue(const KeyValue& entry);
  // Ends the probes and their threads.
  void StopProbes();

 private:
  // Called on the probes' threads.
  void Post(ToDriver message);
  void Put(uint64_t generation, std::string key, std::string value);
  void Want(uint64_t generation, std::string key);

  asio::io_context& io_;
  const std::function<void(const ToDriver&)> send_;
  std::unique_ptr<ConnectivityProbe> connectivity_;
  std::unique_ptr<ExamineChild> exam_;
  std::unique_ptr<PairProbe> pair_probe_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_HOST_QUESTIONS_H_
