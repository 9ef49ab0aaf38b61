// The failures, one per run, for test/system/test_mpi.py: each rank prints the sentence it got, and
// stays until the test ends mpirun.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "mpi_rig.h"

namespace hvd::test {
namespace {

void Send(uint32_t rank, const Status& status) {
  std::printf("rank %u: code %d: %s\n", rank, static_cast<int>(status.code()),
              status.message().c_str());
  std::fflush(stdout);
}

Status AllreduceOnce(Rig& rig, uint64_t tag, Duration idle_limit = std::chrono::seconds(60)) {
  std::vector<uint32_t> all = rig.Everybody();
  std::vector<float> data(100'000, 1.0f);
  return rig.inter_host->Allreduce({{all, rig.world->rank()}, tag, idle_limit}, {}, data.data(),
                                   data.data(), data.size());
}

// Waits, for the test to look on, until the launcher ends this process or a minute is over.
void Linger() { std::this_thread::sleep_for(std::chrono::seconds(60)); }

}  // namespace

int RunEnd(const std::string& name) {
  Rig& rig = TheRig();
  uint32_t rank = rig.world->rank(), last = rig.world->size() - 1;
  Status first = AllreduceOnce(rig, 1);
  if (!first.ok()) Send(rank, first);
  if (name == "absent") {  // the last rank does not take part
    if (rank == last) {
      Linger();
    } else {
      Send(rank, AllreduceOnce(rig, 2, std::chrono::milliseconds(500)));
    }
  } else if (name == "killed") {
    if (rank == last) ::kill(::getpid(), SIGKILL);
    Send(rank, AllreduceOnce(rig, 2, std::chrono::milliseconds(500)));
  } else if (name == "leaves") {  // the last rank goes while the others wait for it
    if (rank == last) {
      rig.inter_host.reset();
      Linger();
    } else if (rank == 0) {
      Send(rank, rig.inter_host->Receive(last, 9, Rig::Soon()).status());
    } else {
      Send(rank, AllreduceOnce(rig, 2));
    }
    Linger();
  } else if (name == "abort") {  // another thread of the last rank aborts while all wait for rank 0
    std::thread aborter;
    if (rank == last) {
      aborter =
          std::thread([&] { rig.inter_host->Abort(Aborted("rank 7 is gone, says its agent")); });
    }
    if (rank != 0) {
      Send(rank, AllreduceOnce(rig, 2));
    } else {
      Send(rank, rig.inter_host->Receive(last, 9, Rig::Soon()).status());
    }
    if (aborter.joinable()) aborter.join();
    Status later = AllreduceOnce(rig, 3);
    if (later.code() != Code::kAborted) Send(rank, Internal("the next call did not fail"));
  }
  // The contract of a failed call: nothing hangs on the way out, and MPI is not finalised.
  rig.Close();
  std::printf("rank %u left\n", rank);
  std::fflush(stdout);
  Linger();  // mpirun ends the others when one leaves, and their words would be lost
  ::_exit(3);
}

int RunLate() {
  constexpr int kTag = 7, kScreen = STDERR_FILENO;
  int provided = 0, rank = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Rig& rig = TheRig();
  rig.remind = std::chrono::milliseconds(20);
  std::thread listens;
  if (rank == 0) {
    int pipe[2] = {-1, -1};
    if (::pipe(pipe) != 0) return 2;
    const int screen = ::dup(kScreen);
    ::dup2(pipe[1], kScreen);
    listens = std::thread([screen, in = pipe[0]] {
      std::string said;
      char piece[256];
      while (said.find("not come to hvd.init() yet") == std::string::npos) {
        const ssize_t bytes = ::read(in, piece, sizeof piece);
        if (bytes <= 0) break;
        said.append(piece, static_cast<size_t>(bytes));
      }
      ::dup2(screen, kScreen);
      std::printf("heard: %s", said.c_str());
      std::fflush(stdout);
      MPI_Send(nullptr, 0, MPI_BYTE, 1, kTag, MPI_COMM_WORLD);
    });
  } else {
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  const std::string why = rig.Open();
  if (listens.joinable()) listens.join();
  std::printf("%s\n", why.empty() ? "together" : why.c_str());
  std::fflush(stdout);
  if (why.empty()) (void)rig.world->Exchange("", Rig::Soon());
  rig.Close();
  return MPI_Finalize();
}

int RunInApplication(const std::string& level) {
  int wanted = level == "multiple"     ? MPI_THREAD_MULTIPLE
               : level == "serialized" ? MPI_THREAD_SERIALIZED
                                       : MPI_THREAD_FUNNELED;
  int provided = 0, finalised = 0;
  MPI_Init_thread(nullptr, nullptr, wanted, &provided);
  Rig& rig = TheRig();
  if (std::string why = rig.Open(); !why.empty()) {
    std::printf("refused: %s\n", why.c_str());
  } else {
    Status status = AllreduceOnce(rig, 1);
    std::printf("rank %u: %s\n", rig.world->rank(), status.ok() ? "added" : "failed");
    (void)rig.world->Exchange("", Rig::Soon());
    rig.Close();
  }
  MPI_Finalized(&finalised);
  std::printf("%s\n", finalised ? "MPI was taken away" : "MPI is still there");
  std::fflush(stdout);
  return MPI_Finalize();
}

}  // namespace hvd::test
