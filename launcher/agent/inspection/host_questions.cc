#include "launcher/agent/inspection/host_questions.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <sstream>
#include <utility>

#include "launcher/agent/inspection/find_command.h"
#include "launcher/process/fault.h"
#include "runtime/base/clock.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

void HostQuestions::Post(ToDriver message) {
  asio::post(io_, [this, message = std::move(message)] { send_(message); });
}

void HostQuestions::Put(uint64_t generation, std::string key, std::string value) {
  Post(PutKey{generation, std::move(key), std::move(value)});
}

void HostQuestions::Want(uint64_t generation, std::string key) {
  Post(WantKey{generation, std::move(key)});
}

void HostQuestions::Answer(const LookAtCommand& question) {
  send_(CommandReport{LookForCommand(question.program, question.path, question.directory)});
}

void HostQuestions::Answer(const AskTime& question) {
  constexpr int64_t kFaultNs = 100'000'000'000;
  const int64_t fault = FaultAsked("clock-ahead") ? kFaultNs : 0;
  send_(TimeReply{question.number, WallNanoseconds() + fault,
                  SteadyNow().time_since_epoch().count()});
}

void HostQuestions::Answer(ProbeConnectivity question, std::string tree_record) {
  connectivity_ = std::make_unique<ConnectivityProbe>(
      std::move(question),
      ConnectivityProbe::Owner{
          [this](std::string key, std::string value) { Put(0, std::move(key), std::move(value)); },
          [this](std::string key) { Want(0, std::move(key)); },
          [this, tree_record](ConnectivityProbed answer) {
            answer.tree_record = tree_record;
            Post(std::move(answer));
          }});
}

void HostQuestions::Answer(OpenProbe question) {
  if (pair_probe_) return;
  constexpr uint64_t kGeneration = PairProbe::kGeneration;
  pair_probe_ = std::make_unique<PairProbe>(
      std::move(question),
      PairProbe::Owner{[this](std::string key, std::string value) {
                         Put(kGeneration, std::move(key), std::move(value));
                       },
                       [this](std::string key) { Want(kGeneration, std::move(key)); },
                       [this](PairMeasured answer) { Post(std::move(answer)); }});
}

void HostQuestions::Answer(const MeasurePair& question) {
  if (pair_probe_) pair_probe_->Measure(question);
}

void HostQuestions::Answer(const ExamineHost& question, const std::string& job_id,
                           SpawnDescriptors descriptors) {
  exam_ = std::make_unique<ExamineChild>(io_, question, job_id, descriptors,
                                         [this](const HostExam& exam) { send_(exam); });
}

void HostQuestions::GiveValue(const KeyValue& entry) {
  if (connectivity_ && entry.generation == 0) connectivity_->GiveValue(entry.key, entry.value);
  if (pair_probe_ && entry.generation == PairProbe::kGeneration)
    pair_probe_->GiveValue(entry.key, entry.value);
}

void HostQuestions::StopProbes() {
  connectivity_.reset();
  pair_probe_.reset();
}

namespace {

constexpr size_t kMostBytes = 256 * 1024;  // more than any host reports

std::vector<std::string> EnvironmentFor(const ExamineHost& question, const std::string& job_id) {
  std::vector<std::string> environment;
  for (const std::string& entry : question.environment) {
    if (!entry.starts_with("HVD_JOB_ID=")) environment.push_back(entry);
  }
  environment.push_back("HVD_JOB_ID=" + job_id);  // so that a sweep finds it
  return environment;
}

}  // namespace

ExamineChild::ExamineChild(asio::io_context& io, const ExamineHost& question,
                           const std::string& job_id, SpawnDescriptors descriptors,
                           std::function<void(const HostExam&)> done)
    : output_(io), limit_(io), done_(std::move(done)) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    asio::post(io, [this] { Finish(); });
    return;
  }
  UniqueFd write_end(ends[1]);
  output_.assign(ends[0]);
  SpawnRequest request{{"hvdrun", "agent", "--examine", question.directory, question.interpreter},
                       EnvironmentFor(question, job_id),
                       "/"};
  request.program = "/proc/self/exe";
  descriptors.stdout_fd = write_end.get();
  pid_ = SpawnProgram(request, descriptors).pid;
  limit_.expires_after(std::chrono::milliseconds(question.limit_ms));
  limit_.async_wait([this](const asio::error_code& error) {
    if (!error) Finish();
  });
  Read();
}

void ExamineChild::Read() {
  output_.async_read_some(asio::buffer(buffer_),
                          [this](const asio::error_code& error, size_t count) {
                            if (error == asio::error::operation_aborted) return;
                            text_.append(buffer_.data(), count);
                            if (error || text_.size() > kMostBytes) return Finish();
                            Read();
                          });
}

// A child that has printed everything exits by itself and may have been reaped: its pid may belong
// to another process.
void ExamineChild::Finish() {
  if (!done_) return;
  limit_.cancel();
  output_.close();
  bool whole = text_.ends_with("done=1\n");
  if (pid_ > 0 && !whole) ::kill(-pid_, SIGKILL);
  HostExam exam;
  std::istringstream lines(text_);
  for (std::string line; std::getline(lines, line);) exam.facts.push_back(line);
  std::exchange(done_, nullptr)(exam);
}

}  // namespace hvd
