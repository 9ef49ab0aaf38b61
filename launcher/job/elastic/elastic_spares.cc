#include "launcher/job/elastic/elastic_spares.h"

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/base/text/format.h"

namespace hvd {

void NoticeSpares(ElasticChange& change) {
  const ElasticState& elastic = change.elastic;
  if (!elastic.running || elastic.limits.spares == 0) return;
  if (elastic.generation.size() < elastic.limits.max_np) return;  // those that wait are let in
  for (uint32_t worker : change.AliveWorkers()) {
    RankRecord& record = change.state.ranks[worker];
    if (!record.waiting() || record.was_member() || record.leaving()) continue;
    if (std::exchange(record.init.is_spare, true)) continue;
    change.Do(AskMemory{worker});
  }
}

void TakeMemory(ElasticChange& change, const MemoryTold& told) {
  if (told.rank >= change.state.ranks.size()) return;
  const RankRecord& record = change.state.ranks[told.rank];
  if (!record.waiting() || !record.init.is_spare) return;
  constexpr uint64_t kMegabyte = 1'000'000;
  change.Tell(Format("a spare is ready on host {} (pid {}); it holds {} MB of memory",
                     change.state.plan.hosts[change.state.plan.ranks[told.rank].host], record.pid,
                     told.bytes / kMegabyte));
}

}  // namespace hvd
