// Looks up in the directory where peers listen, in a thread of its own, because the directory
// blocks. The thread starts with the first question.
#ifndef HVD_RUNTIME_NET_MESH_MESH_RESOLVER_H_
#define HVD_RUNTIME_NET_MESH_MESH_RESOLVER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "runtime/base/mutex.h"
#include "runtime/net/kv_store.h"
#include "runtime/net/mesh/mesh_address.h"

namespace hvd {

// Where a rank of the mesh keeps its record.
std::string MeshKvKey(uint32_t rank);
// The rank whose record has this key; nothing for another key.
std::optional<uint32_t> RankOfMeshKey(std::string_view key);

class MeshResolver {
 public:
  using Answer = std::function<void(uint32_t rank, Result<MeshRecord> record)>;

  // `answer` is called in the resolver's thread, once for each question.
  MeshResolver(KvStore& directory, Answer answer)
      : directory_(directory), answer_(std::move(answer)) {}
  ~MeshResolver() { Stop(); }

  // The answer is kAborted if the rank's record does not appear by `deadline`.
  void Ask(uint32_t rank, TimePoint deadline);
  // No more answers afterwards. Takes as long as one directory lookup, at most a tenth of a second.
  void Stop();

 private:
  struct Question {
    uint32_t rank;
    TimePoint deadline;
  };

  void Run();
  // False if the question is still open.
  bool TryOne(const Question& question);

  KvStore& directory_;
  const Answer answer_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Question> questions_ HVD_GUARDED_BY(mutex_);
  bool stopping_ HVD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_RESOLVER_H_
