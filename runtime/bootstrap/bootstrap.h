// Bootstrap: how this process gets into a world, and where its shared memory comes from.
#ifndef HVD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_
#define HVD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/device/shared_heap.h"
#include "runtime/net/kv_store.h"
#include "runtime/net/layout.h"
#include "runtime/segment/job_page.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {

// One membership, from init to shutdown.
struct World {
  uint64_t generation = 0;
  uint32_t rank = 0, size = 1;
  uint32_t local_rank = 0, local_size = 1;
  uint32_t cross_rank = 0, cross_size = 1;
  bool homogeneous = true;
  // After this world the process may join another of other ranks.
  bool ranks_change = false;
  // All ranks, by world rank. The local ranks of a host number the rank blocks of its page; a
  // host's ranks need not be in a row.
  std::vector<RankPlace> places{RankPlace{}};
  uint32_t hosts = 1;
  // For connections between hosts: the secret of the job, and where to listen.
  std::string data_key;
  ListenHints listen;
  UniqueFd page_fd;
  Mapping page_memory;
  JobPage page;  // a view of page_memory

  uint32_t host() const { return places[rank].host; }
};

// Thread-safe. A new Join is possible after Leave.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  // Blocks until the world is complete. A `timeout` <= 0 means no limit of its own; it still ends
  // when the launcher knows that a rank cannot come any more. kDismissed: the job goes on without
  // this process, which is to end with success.
  virtual Result<World> Join(Duration timeout) = 0;
  // "I am out of this generation": to be called after the last access to its page. `since`: when it
  // began to leave; from then on other ranks may have failed because of it.
  virtual void Leave(uint64_t generation, TimePoint since) = 0;

  virtual SegmentSource& segments() = 0;
  // The records that the ranks of the current generation exchange. Empty outside a generation.
  virtual KvStore& directory() = 0;

  // Reads the messages of the agent without blocking. Not ok: the agent is gone.
  virtual Status PollAgent() = 0;
  // True if a death in this world has to be noticed by an agent (then a runtime thread holds the
  // alive mark).
  virtual bool watched() const = 0;

  // In a forked child: lets go of what belongs to the parent. Async-signal-safe.
  virtual void CloseAfterFork() = 0;
};

// Maps a page that the agent made.
Status AttachPage(UniqueFd fd, uint64_t bytes, World* world);

}  // namespace hvd

#endif  // HVD_RUNTIME_BOOTSTRAP_BOOTSTRAP_H_
