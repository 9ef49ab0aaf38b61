#include "timeline/convert/pid_table.h"

#include "timeline/read/json_walk.h"

namespace hvd {
namespace {

// Pids on Linux are smaller.
constexpr int64_t kMostOwn = 5'000'000;

}  // namespace

PidTable::PidTable(const std::vector<bool>& keeps) : traces_(keeps.size()) {
  for (size_t i = 0; i < keeps.size(); ++i) traces_[i].keeps = keeps[i];
}

int64_t PidTable::NumberFor(size_t index, int64_t own) {
  Trace& trace = traces_[index];
  const bool is_own = own >= 0 && own < kMostOwn;
  if (is_own && trace.keeps) {
    const auto owner = owners_.emplace(own, index).first;
    if (owner->second == index) return own;
    trace.keeps = false;  // all later ones are moved, too, so a job stays together
  }
  const int64_t block = (static_cast<int64_t>(index) + 1) * kBlock;
  if (is_own) return block + own;
  return block + kMostOwn + trace.others++ % (kBlock - kMostOwn);
}

const PidTable::Pid& PidTable::Find(size_t index, std::string_view pid) {
  Trace& trace = traces_[index];
  if (trace.found != nullptr && trace.last == pid) {
    trace.found->is_new = false;
    return *trace.found;
  }
  trace.last = pid;
  auto [entry, is_new] = trace.known.try_emplace(trace.last);
  trace.found = &entry->second;
  if (is_new) {
    trace.found->text = std::to_string(NumberFor(index, IntegerOf(pid, -1)));
    trace.found->moved = trace.found->text != pid;
  }
  trace.found->is_new = is_new;
  return *trace.found;
}

}  // namespace hvd
