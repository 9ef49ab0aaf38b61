// The backends by the names that programs ask for (hvd_built, hvd_enabled): whether each can be
// loaded, when a world uses it, of which worlds it connects the hosts, and how it is opened. A new
// backend is a new row, and nothing else here.
#ifndef HVD_RUNTIME_API_BACKEND_LIST_H_
#define HVD_RUNTIME_API_BACKEND_LIST_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/backends/inter_host_comm.h"
#include "runtime/backends/inter_host_loader.h"
#include "runtime/backends/mpi/mpi_plugin.h"
#include "runtime/base/status.h"
#include "runtime/net/kv_store.h"

namespace hvd {

// Of a world and of this process.
struct BackendFacts {
  bool several_hosts = false;
  bool over_mpi = false;    // MPI connects the ranks
  bool mpi_beside = false;  // it does not, and started them all the same
  bool mpi_threads = false;
  bool cuda = false, nccl = false;  // loaded, and used
};

// What a backend is opened with that connects hosts.
struct InterHostOpening {
  const InterHostOptions& options;
  KvStore& directory;  // outlives what is opened
  MpiWorld* mpi;       // null: the world is not over MPI
};

struct BackendRow {
  std::string_view name;
  // 0: it cannot be loaded. Of "nccl" its version.
  int32_t (*built)();
  bool (*used)(const BackendFacts& facts);
  // Whether it connects the hosts of such a world of several, which one row alone does, and how it
  // is opened then. Null: it connects no hosts.
  bool (*connects)(const BackendFacts& facts) = nullptr;
  Result<std::unique_ptr<InterHostComm>> (*open)(const InterHostOpening& opening) = nullptr;
};

std::span<const BackendRow> BackendRows();
// Null: there is none of this name.
const BackendRow* FindBackend(std::string_view name);
// The one that connects the hosts of such a world, by its row; null: there is one host. Pure.
const BackendRow* InterHostBackend(const BackendFacts& facts);

}  // namespace hvd

#endif  // HVD_RUNTIME_API_BACKEND_LIST_H_
