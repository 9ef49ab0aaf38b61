#include "runtime/net/mesh/mesh_fork.h"

#include <pthread.h>

#include <mutex>
#include <vector>

#include "runtime/base/mutex.h"

namespace hvd {
namespace {

struct Participants {
  Mutex mutex;  // taken before the lock of any of them
  std::vector<ForkParticipant*> all HVD_GUARDED_BY(mutex);
};

// Never destroyed: a process may fork while it ends.
Participants& TheParticipants() {
  static auto* const participants = new Participants;
  return *participants;
}

}  // namespace

void ForkGuard::Add(ForkParticipant* participant) {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(&BeforeFork, &InParent, &InChild); });
  MutexLock lock(TheParticipants().mutex);
  TheParticipants().all.push_back(participant);
}

void ForkGuard::Remove(ForkParticipant* participant) {
  MutexLock lock(TheParticipants().mutex);
  std::erase(TheParticipants().all, participant);
}

void ForkGuard::BeforeFork() {
  TheParticipants().mutex.lock();
  for (ForkParticipant* participant : TheParticipants().all) participant->LockForFork();
}

void ForkGuard::InParent() {
  for (ForkParticipant* participant : TheParticipants().all) participant->UnlockAfterFork();
  TheParticipants().mutex.unlock();
}

void ForkGuard::InChild() {
  for (ForkParticipant* participant : TheParticipants().all) {
    participant->CloseInForkedChild();
    participant->UnlockAfterFork();
  }
  TheParticipants().all.clear();
  TheParticipants().mutex.unlock();
}

}  // namespace hvd
