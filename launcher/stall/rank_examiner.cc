#include "launcher/stall/rank_examiner.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/process/thread_state.h"
#include "launcher/stall/verdict/python_site.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"
#include "runtime/segment/stall_board.h"

namespace hvd {
namespace {

constexpr off_t kMostKept = 1 << 20;
constexpr size_t kMostOfFile = 64 * 1024;
constexpr std::string_view kTarget = "/memfd:hvd-stacks";

// The descriptor number may refer to any file by now.
UniqueFd Open(pid_t pid, const StallBoard& board) {
  const std::string path =
      Format("/proc/{}/fd/{}", pid, board.stack_fd.load(std::memory_order_relaxed));
  std::array<char, 64> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size() - 1);
  if (length <= 0 || !std::string_view(target.data()).starts_with(kTarget)) return {};
  return UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
}

// The file in a worker's memory into which its own handler writes the Python stacks of its threads
// on a signal (stall_board.h). Read from outside.

// Asks the process for its stacks. Returns where they will begin in the file; -1: it has no such
// handler, or its file is not accessible.
int64_t AskForStacks(pid_t pid, const StallBoard& board) {
  const auto signal = static_cast<int>(board.stack_signal.load(std::memory_order_acquire));
  // Without its handler the signal would end the process.
  if (signal < SIGRTMIN || signal > SIGRTMAX || !HandlesSignal(pid, signal)) return -1;
  const UniqueFd file = Open(pid, board);
  struct stat info {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return -1;
  // The file is appended to.
  if (info.st_size > kMostKept && ::ftruncate(file.get(), 0) == 0) info.st_size = 0;
  return ::kill(pid, signal) == 0 ? info.st_size : -1;
}

// The text that the handler has written since `from`.
std::string ReadStacks(pid_t pid, const StallBoard& board, int64_t from) {
  const UniqueFd file = Open(pid, board);
  if (!file.valid() || from < 0) return "";
  std::string text(kMostOfFile, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), from);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// Waits of this length are rare in training; each is reported to the driver of an elastic job.
constexpr Duration kLongWait = std::chrono::seconds(2);
constexpr auto kLookEvery = std::chrono::milliseconds(250);
// Long enough for a handler to write and for CPU usage to show.
constexpr auto kMeasured = std::chrono::milliseconds(200);

bool IsStopped(const ThreadState& state) { return state.state == "T" || state.state == "t"; }

uint32_t Percent(uint64_t ticks, Duration measured) {
  static const auto a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double seconds = std::chrono::duration<double>(measured).count();
  return static_cast<uint32_t>(100.0 * static_cast<double>(ticks) / a_second / seconds);
}

}  // namespace

void RankExaminer::Watch(const HostGenerations& generations, bool reports_idle) {
  generations_ = &generations;
  reports_idle_ = reports_idle;
  Look();
}

void RankExaminer::Look() {
  watches_.resize(generations_->slots().size());
  const uint64_t generation = generations_->page().generation();
  Duration longest{};
  uint64_t finished = 0;
  for (uint32_t slot = 0; generation != 0 && slot < watches_.size(); ++slot) {
    const RankBlock* block = generations_->BlockOf(slot, generation);
    if (block == nullptr) continue;
    const TimePoint now = clock_.Now();
    longest = std::max(longest, LongestWait(*block, now));
    finished += block->stalls.finished.load(std::memory_order_acquire);
    std::optional<OverdueWait> wait = watches_[slot].Overdue(*block, now);
    if (!wait && generations_->world().ranks_change && generation > 1)
      wait = watches_[slot].FirstOverdue(*block, generation, now);
    if (wait) send_(StallReport{generation, generations_->world().RankOf(slot), wait->awaited});
  }
  if (reports_idle_) ReportIdle(generation, longest, finished);
  look_timer_.expires_after(kLookEvery);
  look_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) Look();
  });
}

// A wait that ended without a finished collective was abandoned: it still counts as idle time.
void RankExaminer::ReportIdle(uint64_t generation, Duration longest, uint64_t finished) {
  const uint64_t idle = longest >= kLongWait ? generation : 0;
  const bool given_up = idle == 0 && idle_generation_ == generation && finished == finished_;
  if (given_up || idle == std::exchange(idle_generation_, idle)) return;
  finished_ = finished;
  const auto ms = static_cast<uint64_t>(longest / std::chrono::milliseconds(1));
  send_(GenerationIdle{generation, idle != 0 ? ms : 0});
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
