#include "launcher/job/elastic/elastic_spares.h"

#include <cstdint>
#include <string>

#include "runtime/base/text/format.h"

namespace hvd {

std::vector<uint32_t> NewSpares(const ElasticChange& change) {
  const ElasticState& elastic = change.elastic;
  std::vector<uint32_t> spares;
  if (!elastic.running || elastic.policy.spares == 0) return spares;
  if (elastic.generation.size() < elastic.policy.max_np) return spares;  // waiting workers join
  for (uint32_t worker : change.AliveWorkers()) {
    const RankRecord& record = change.state.ranks[worker];
    if (record.waiting() && !record.was_member() && !record.leaving() && !record.init.is_spare)
      spares.push_back(worker);
  }
  return spares;
}

void NoteSpare(ElasticChange& change, uint32_t worker) {
  change.state.ranks[worker].init.is_spare = true;
  change.Do(AskMemory{worker});
}

void HandleMemory(ElasticChange& change, const MemoryReply& reply) {
  if (reply.rank >= change.state.ranks.size()) return;
  const RankRecord& record = change.state.ranks[reply.rank];
  if (!record.waiting() || !record.init.is_spare) return;
  constexpr uint64_t kMegabyte = 1'000'000;
  change.Notify(Format("a spare is ready on host {} (pid {}); it holds {} MB of memory",
                       change.state.plan.hosts[change.state.plan.ranks[reply.rank].host],
                       record.pid, reply.bytes / kMegabyte));
}

}  // namespace hvd
