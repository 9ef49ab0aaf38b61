#include "launcher/agent/inspection/host_questions.h"

#include <asio/post.hpp>

#include "launcher/agent/inspection/find_command.h"
#include "launcher/process/fault.h"
#include "runtime/base/clock.h"

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
  send_(CommandSeen{LookForCommand(question.program, question.path, question.directory)});
}

void HostQuestions::Answer(const AskTime& question) {
  constexpr int64_t kFaultNs = 100'000'000'000;
  const int64_t fault = FaultAsked("clock-ahead") ? kFaultNs : 0;
  send_(
      TimeTold{question.number, WallNanoseconds() + fault, SteadyNow().time_since_epoch().count()});
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

}  // namespace hvd
