#include "runtime/backends/mpi/mpi_library.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/base/idle_limit.h"
#include "runtime/base/log.h"
#include "runtime/base/mutex.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr int kSpins = 50;
constexpr int kYields = 2000;
constexpr long kShortestSleepNs = 20'000;
constexpr int kMostTurns = kYields + 20 * 24;  // 0.5 ms

// MPI does not signal arrivals, so they are polled for; less often the longer nothing has come.
class Patience {
 public:
  void Reset() { turns_ = 0; }
  void Pause() {
    turns_ = std::min(turns_ + 1, kMostTurns);
    if (turns_ < kSpins) return;
    if (turns_ < kYields) {
      ::sched_yield();
      return;
    }
    long ns = kShortestSleepNs * (1 + (turns_ - kYields) / 20);
    timespec time{0, ns};
    ::nanosleep(&time, nullptr);
  }

 private:
  int turns_ = 0;
};

const char* LevelName(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE: return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED: return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED: return "MPI_THREAD_SERIALIZED";
    default: return "MPI_THREAD_MULTIPLE";
  }
}

Mutex starting;
MpiLibrary* library HVD_GUARDED_BY(starting) = nullptr;

}  // namespace

Status MpiError(std::string_view what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Internal(std::string(what) + ": " + std::string(text, static_cast<size_t>(length)));
}

// An activity with the outcome of its last step.
struct MpiLibrary::Task {
  Activity* activity = nullptr;
  TimePoint deadline = TimePoint::max();
  IdleLimit idle{kNoLimit, 0, TimePoint{}};
  uint64_t moved = 0;                            // steps
  const std::function<void()>* calls = nullptr;  // instead of an activity
  bool done = false;
  Status status;

  // True if it made progress.
  bool Step() {
    if (calls != nullptr) {
      (*calls)();
      return done = true;
    }
    Result<Turn> turn = activity->Step();
    if (!turn.ok() || *turn == Turn::kDone) {
      if (!turn.ok()) status = turn.status();
      return done = true;
    }
    if (*turn == Turn::kMoved) return ++moved != 0;
    const TimePoint now = SteadyNow();
    if (now >= deadline || idle.Over(moved, now)) {
      status = Status(Code::kInProgress, activity->Waiting() + ", and the time for it is over");
      done = true;
    }
    return false;
  }
};

Result<MpiLibrary*> MpiLibrary::Start(bool for_communicator, bool one_thread,
                                      void (*before_finalize)()) {
  MutexLock lock(starting);
  int finalised = 0, initialised = 0;
  MPI_Finalized(&finalised);
  if (finalised) {
    return Unsupported(
        "MPI cannot be used because it has been finalised in this process, and it cannot be "
        "initialised twice; call hvd.init() before MPI_Finalize");
  }
  if (library != nullptr) {
    library->WatchForFinalize(before_finalize);
    return library;
  }
  MPI_Initialized(&initialised);
  if (!initialised && for_communicator) {
    return InvalidArgument(
        Format("the communicator given to hvd.init() is of another MPI library than {0}, which "
               "libhvd_mpi.so was built with and which is not initialised; use an mpi4py that is "
               "built with the same {0}",
               kMpiName));
  }
  std::unique_ptr<MpiLibrary> made(new MpiLibrary);
  made->process_ = ::getpid();
  Status status = initialised ? made->Adopt(one_thread) : made->Initialise(one_thread);
  if (!status.ok()) return status;
  library = made.release();
  library->WatchForFinalize(before_finalize);
  return library;
}

// MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF.
void MpiLibrary::WatchForFinalize(void (*before_finalize)()) {
  if (before_finalize == nullptr || before_finalize_ != nullptr) return;
  before_finalize_ = before_finalize;
  Run([this] {
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &MpiLibrary::OnFinalize, &key, this);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  });
}

// An application that has initialised MPI controls it, at any thread level, until it finalises it.
Result<MpiFacts> MpiLibrary::StartBeside(bool one_thread) {
  int finalised = 0, initialised = 0;
  MPI_Finalized(&finalised);
  MPI_Initialized(&initialised);
  if (initialised == 0 || finalised != 0) {
    const Result<MpiLibrary*> started = Start(false, one_thread);
    if (!started.ok()) return started.status();
  }
  int size = 0, level = MPI_THREAD_SINGLE;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Query_thread(&level);
  return MpiFacts{static_cast<uint32_t>(size), level == MPI_THREAD_MULTIPLE};
}

int MpiLibrary::OnFinalize(MPI_Comm, int, void*, void* extra) {
  auto* self = static_cast<MpiLibrary*>(extra);
  bool ours = false;
  {
    MutexLock lock(self->mutex_);
    ours = self->stopping_;
  }
  if (!ours && self->process_ == ::getpid()) self->before_finalize_();
  return MPI_SUCCESS;
}

// The application initialised MPI, at a thread level of its choice.
Status MpiLibrary::Adopt(bool one_thread) {
  MPI_Query_thread(&level_);
  if (level_ < MPI_THREAD_SERIALIZED) {
    return Unsupported(
        std::string("MPI cannot be used because the application initialised it with ") +
        LevelName(level_) +
        ", which lets only the application's main thread call it; initialise it with "
        "MPI_THREAD_MULTIPLE (the default of mpi4py), or leave that to hvd.init()");
  }
  if (level_ == MPI_THREAD_SERIALIZED) {
    LogWarning(
        "the application initialised MPI with MPI_THREAD_SERIALIZED: it must not call MPI itself "
        "while collectives of Horovod are under way");
  }
  one_thread_ = one_thread || level_ < MPI_THREAD_MULTIPLE;
  if (one_thread_) thread_ = std::thread([this] { ServeCalls(); });
  return Status::Ok();
}

// In our own thread: below MPI_THREAD_MULTIPLE only the thread that initialises may call MPI, and
// the application's threads come and go.
Status MpiLibrary::Initialise(bool one_thread) {
  int wanted = one_thread ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE;
  int code = MPI_SUCCESS;
  bool started = false;
  thread_ = std::thread([&, this] {
    int provided = MPI_THREAD_SINGLE;
    int answer = MPI_Init_thread(nullptr, nullptr, wanted, &provided);
    {
      MutexLock lock(mutex_);
      code = answer;
      level_ = provided;
      started = true;
    }
    changed_.notify_all();
    if (answer == MPI_SUCCESS) ServeCalls();
  });
  MutexLock lock(mutex_);
  changed_.wait(lock, [&] { return started; });
  if (code != MPI_SUCCESS) {
    lock.unlock();
    thread_.join();
    return Unsupported(
        Format("MPI cannot be used because MPI_Init_thread failed with code {}", code));
  }
  ours_ = true;
  one_thread_ = one_thread || level_ < MPI_THREAD_MULTIPLE;
  return Status::Ok();
}

std::string MpiLibrary::description() const {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text, static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n")) + ", " + LevelName(level_) +
         (one_thread_ ? ", all calls from one thread" : "");
}

void MpiLibrary::ServeCalls() {
  Patience patience;
  std::vector<Task*> turn;
  for (;;) {
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [this]() HVD_REQUIRES(mutex_) { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) break;
      turn = tasks_;
    }
    bool moved = false, finished = false;
    for (Task* task : turn) {
      moved |= task->Step();
      finished |= task->done;
    }
    if (finished) {
      MutexLock lock(mutex_);
      std::erase_if(tasks_, [](Task* task) { return task->done; });
      changed_.notify_all();
    }
    moved ? patience.Reset() : patience.Pause();
  }
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (ours_ && !finalised && !given_up_.load(std::memory_order_relaxed)) MPI_Finalize();
}

void MpiLibrary::Enqueue(Task& task) {
  MutexLock lock(mutex_);
  tasks_.push_back(&task);
  changed_.notify_all();
  changed_.wait(lock, [&]() HVD_REQUIRES(mutex_) {
    return std::find(tasks_.begin(), tasks_.end(), &task) == tasks_.end();
  });
}

Status MpiLibrary::Drive(Activity& activity, TimePoint deadline) {
  Task task{.activity = &activity, .deadline = deadline};
  return Carry(task);
}

Status MpiLibrary::DriveWhileMoving(Activity& activity, Duration idle_limit) {
  Task task{.activity = &activity, .idle = {idle_limit, 0, SteadyNow()}};
  return Carry(task);
}

Status MpiLibrary::Carry(Task& task) {
  if (one_thread_) {
    Enqueue(task);
    return std::move(task.status);
  }
  Patience patience;
  while (!task.done) task.Step() ? patience.Reset() : patience.Pause();
  return std::move(task.status);
}

void MpiLibrary::Run(const std::function<void()>& calls) {
  if (!one_thread_) return calls();
  Task task{.calls = &calls};
  Enqueue(task);
}

void MpiLibrary::Keep(MpiBuffer buffer) {
  MutexLock lock(mutex_);
  kept_.push_back(std::move(buffer));
}

void MpiLibrary::GiveUpOn(MpiBuffer buffer, std::string_view what) {
  if (!given_up_.exchange(true, std::memory_order_relaxed)) {
    LogInfo(
        Format("MPI will not be finalised in this process, because it was left at work: {}", what));
  }
  Keep(std::move(buffer));
}

void MpiLibrary::FinishIfStarted() {
  MutexLock lock(starting);
  if (library != nullptr) library->Finish();
}

void MpiLibrary::Finish() {
  if (process_ != ::getpid() || !thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace hvd
