#include "launcher/stall/rank_examiner.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launcher/stall/stack_file.h"
#include "launcher/verdict/python_site.h"

namespace hvd {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(250);
// Long enough for a handler to write and for the use of the CPU to show.
constexpr auto kMeasured = std::chrono::milliseconds(200);

bool IsStopped(const ThreadState& state) { return state.state == "T" || state.state == "t"; }

uint32_t Percent(uint64_t ticks, Duration measured) {
  static const auto a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double seconds = std::chrono::duration<double>(measured).count();
  return static_cast<uint32_t>(100.0 * static_cast<double>(ticks) / a_second / seconds);
}

}  // namespace

void RankExaminer::Watch(const HostGenerations& generations) {
  generations_ = &generations;
  Look();
}

void RankExaminer::Look() {
  watches_.resize(generations_->slots().size());
  const uint64_t generation = generations_->page().generation();
  for (uint32_t slot = 0; generation != 0 && slot < watches_.size(); ++slot) {
    const RankBlock* block = generations_->BlockOf(slot, generation);
    if (block == nullptr) continue;
    if (const std::optional<WaitSeen> wait = watches_[slot].Overdue(*block, clock_.Now()))
      send_(StallSeen{generation, generations_->world().RankOf(slot), wait->awaited});
  }
  look_timer_.expires_after(kLookEvery);
  look_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) Look();
  });
}

void RankExaminer::Answer(const ExamineRanks& question) {
  question_ = question;
  subjects_.clear();
  asked_ = clock_.Now();
  const bool current =
      generations_ != nullptr && generations_->page().generation() == question.generation;
  for (uint32_t slot = 0; current && slot < generations_->slots().size(); ++slot) {
    Subject subject{.slot = slot, .pid = generations_->PidOf(slot)};
    subject.state = ReadThreadState(subject.pid);
    const RankBlock* block = generations_->BlockOf(slot, question.generation);
    const auto& wanted = question.stacks;
    const bool is_wanted =
        std::ranges::find(wanted, generations_->world().RankOf(slot)) != wanted.end();
    subject.wanted = block != nullptr && is_wanted && !IsStopped(subject.state);
    if (subject.wanted) subject.stack_from = AskForStacks(subject.pid, block->stalls);
    subjects_.push_back(std::move(subject));
  }
  answer_timer_.expires_after(kMeasured);
  answer_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) Finish();
  });
}

RankFacts RankExaminer::FactsOf(const Subject& subject, Duration measured) const {
  const RankBlock* block = generations_->BlockOf(subject.slot, question_.generation);
  RankFacts facts = block == nullptr ? RankFacts{} : FactsFromPage(*block, clock_.Now());
  facts.rank = generations_->world().RankOf(subject.slot);
  facts.pid = subject.pid;
  facts.in_world = block != nullptr ? 1 : 0;
  const ThreadState state = ReadThreadState(subject.pid);
  facts.state = state.state;
  facts.blocked_in = state.blocked_in;
  const uint64_t before = subject.state.cpu_ticks;
  facts.cpu_percent = Percent(state.cpu_ticks - std::min(before, state.cpu_ticks), measured);
  if (block != nullptr && subject.stack_from >= 0)
    facts.site = PythonSite(ReadStacks(subject.pid, block->stalls, subject.stack_from));
  return facts;
}

void RankExaminer::Finish() {
  RanksExamined answer{question_.number, question_.generation, {}};
  const Duration measured = clock_.Now() - asked_;
  for (const Subject& subject : subjects_) answer.ranks.push_back(FactsOf(subject, measured));
  AnswerWith(std::move(answer));
}

void RankExaminer::AnswerWith(RanksExamined answer) {
  std::vector<pid_t> silent;
  for (size_t i = 0; i < subjects_.size(); ++i) {
    if (subjects_[i].wanted && answer.ranks[i].site.empty()) silent.push_back(subjects_[i].pid);
  }
  if (silent.empty()) return send_(answer);
  outside_.Ask(silent,
               [this, answer = std::move(answer)](const OutsideStacks::Texts& texts) mutable {
                 for (RankFacts& facts : answer.ranks) {
                   const auto found = texts.find(static_cast<pid_t>(facts.pid));
                   if (found != texts.end()) facts.site = PySpySite(found->second, found->first);
                 }
                 send_(answer);
               });
}

}  // namespace hvd
