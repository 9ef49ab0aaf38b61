#include "runtime/net/mesh/mesh_fork.h"

#include <pthread.h>

#include <mutex>
#include <vector>

#include "runtime/base/mutex.h"

namespace hvd {
namespace {

struct ForkedDrivers {
  Mutex mutex;  // taken before the lock of any of them
  std::vector<MeshDriver*> all HVD_GUARDED_BY(mutex);
};

// Never destroyed: a process may fork while it exits.
ForkedDrivers& TheDrivers() {
  static auto* const drivers = new ForkedDrivers;
  return *drivers;
}

}  // namespace

void ForkGuard::Add(MeshDriver* driver) {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(&BeforeFork, &InParent, &InChild); });
  MutexLock lock(TheDrivers().mutex);
  TheDrivers().all.push_back(driver);
}

void ForkGuard::Remove(MeshDriver* driver) {
  MutexLock lock(TheDrivers().mutex);
  std::erase(TheDrivers().all, driver);
}

void ForkGuard::BeforeFork() {
  TheDrivers().mutex.lock();
  for (MeshDriver* driver : TheDrivers().all) driver->mutex.lock();
}

void ForkGuard::InParent() {
  for (MeshDriver* driver : TheDrivers().all) driver->mutex.unlock();
  TheDrivers().mutex.unlock();
}

void ForkGuard::InChild() {
  for (MeshDriver* driver : TheDrivers().all) {
    driver->CloseInForkedChild();
    driver->mutex.unlock();
  }
  TheDrivers().all.clear();
  TheDrivers().mutex.unlock();
}

}  // namespace hvd
