#include "runtime/net/mesh/mesh.h"

#include <cerrno>
#include <utility>

#include "runtime/base/idle_limit.h"
#include "runtime/base/text/format.h"
#include "runtime/net/mesh/mesh_fork.h"

namespace hvd {
namespace {

MeshTransfer Sending(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes,
                     uint32_t stripe) {
  return {.peer = peer, .stripe = stripe, .tag = tag, .from = bytes.data(), .bytes = bytes.size()};
}

MeshTransfer Receiving(uint32_t peer, MeshTag tag, std::span<std::byte> bytes, uint32_t stripe) {
  return {.kind = MeshTransfer::Kind::kReceive,
          .peer = peer,
          .stripe = stripe,
          .tag = tag,
          .to = bytes.data(),
          .bytes = bytes.size()};
}

std::string NameOfRank(uint32_t rank) { return Format("rank {}", rank); }

}  // namespace

// ---- handles

MeshHandle& MeshHandle::operator=(MeshHandle&& other) noexcept {
  GiveUp();
  mesh_ = other.mesh_;
  transfer_ = std::move(other.transfer_);
  return *this;
}

void MeshHandle::GiveUp() {
  if (transfer_ != nullptr) mesh_->GiveUp(transfer_.get());
  transfer_.reset();
}

// ---- open and close

Result<std::unique_ptr<Mesh>> Mesh::Open(MeshOptions options, KvStore& directory) {
  if (options.job_key.empty()) {
    return InvalidArgument(Format(
        "rank {} has no job key, and without it every program could join the job", options.rank));
  }
  Result<MeshListener> listener = OpenMeshListener(options.listen, options.rank);
  if (!listener.ok()) return listener.status();
  std::unique_ptr<Mesh> mesh(new Mesh(std::move(options), directory, std::move(*listener)));
  HVD_RETURN_IF_ERROR(mesh->Start(directory));
  return mesh;
}

Mesh::Mesh(MeshOptions options, KvStore& directory, MeshListener listener)
    : options_(std::move(options)),
      record_(listener.record),
      driver_(ReactorOptions(), std::move(listener), signs_, options_.spin),
      resolver_(directory, [this](uint32_t rank, const Result<MeshRecord>& record) {
        Resolved(rank, record);
      }) {}

MeshReactorOptions Mesh::ReactorOptions() {
  MeshReactorOptions options;
  options.connector = {.identity = {options_.job_key, options_.generation, options_.rank},
                       .connect_timeout = options_.connect_timeout,
                       .handshake_timeout = options_.handshake_timeout,
                       .name = options_.name ? options_.name : NameOfRank};
  options.most_kept_bytes = options_.most_kept_bytes;
  options.proves_routes = options_.proves_routes;
  options.resolve = [this](uint32_t rank) {
    resolver_.Ask(rank, SteadyNow() + options_.connect_timeout);
  };
  return options;
}

Status Mesh::Start(KvStore& directory) {
  if (!driver_.valid()) {
    return SystemError(Format("rank {} cannot watch connections", options_.rank), errno);
  }
  ForkGuard::Add(&driver_);
  Status published = directory.Put(MeshKvKey(options_.rank), EncodeMeshRecord(record_));
  if (published.ok()) thread_ = std::thread([this] { driver_.Serve(); });
  return published;
}

Mesh::~Mesh() {
  ForkGuard::Remove(&driver_);
  resolver_.Stop();
  driver_.Stop();
  if (thread_.joinable()) thread_.join();
}

void Mesh::Abort(const Status& why) {
  MutexLock lock(driver_.mutex);
  driver_.reactor().Abort(why, Format("rank {} gave up: {}", options_.rank, why.message()));
  driver_.NotifyAll();
}

void Mesh::Resolved(uint32_t rank, const Result<MeshRecord>& record) {
  MutexLock lock(driver_.mutex);
  driver_.reactor().Resolved(rank, record, SteadyNow());
  driver_.NotifyAll();
  driver_.Kick();  // a thread that polls has a new time to look at
}

std::string Mesh::AddressOf(uint32_t rank) {
  MutexLock lock(driver_.mutex);
  return driver_.reactor().AddressOf(rank);
}

// ---- transfers

MeshHandle Mesh::Send(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes,
                      uint32_t stripe) {
  return Begin(Sending(peer, tag, bytes, stripe));
}

MeshHandle Mesh::Receive(uint32_t peer, MeshTag tag, std::span<std::byte> bytes, uint32_t stripe) {
  return Begin(Receiving(peer, tag, bytes, stripe));
}

MeshHandle Mesh::Begin(MeshTransfer transfer) {
  auto begun = std::make_unique<MeshTransfer>(std::move(transfer));
  MeshTransfer* const alone = begun.get();
  Begin({&alone, 1});
  return MeshHandle(this, std::move(begun));
}

Status Mesh::SendNow(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes,
                     MeshHandle* rest) {
  auto begun = std::make_unique<MeshTransfer>(Sending(peer, tag, bytes, 0));
  MeshTransfer* const alone = begun.get();
  bool over = false;
  {
    MutexLock lock(driver_.mutex);
    BeginLocked({&alone, 1});
    over = alone->done;
  }
  if (over) return begun->status;
  *rest = MeshHandle(this, std::move(begun));
  return {Code::kInProgress, ""};
}

MeshHandle MeshStart::Send(uint32_t peer, MeshTag tag, std::span<const std::byte> bytes,
                           uint32_t stripe) {
  return Add(Sending(peer, tag, bytes, stripe));
}

MeshHandle MeshStart::Receive(uint32_t peer, MeshTag tag, std::span<std::byte> bytes,
                              uint32_t stripe) {
  return Add(Receiving(peer, tag, bytes, stripe));
}

MeshHandle MeshStart::Receive(uint32_t peer, MeshTag tag, MeshConsumer& consumer, size_t bytes,
                              uint32_t stripe) {
  MeshTransfer transfer = Receiving(peer, tag, {}, stripe);
  transfer.consumer = &consumer;
  transfer.bytes = bytes;
  return Add(std::move(transfer));
}

MeshHandle MeshStart::Add(MeshTransfer transfer) {
  auto added = std::make_unique<MeshTransfer>(std::move(transfer));
  added->eager = eager_;
  transfers_.push_back(added.get());
  return MeshHandle(&mesh_, std::move(added));
}

void Mesh::Begin(std::span<MeshTransfer* const> transfers) {
  MutexLock lock(driver_.mutex);
  BeginLocked(transfers);
}

void Mesh::BeginLocked(std::span<MeshTransfer* const> transfers) {
  driver_.reactor().Begin(transfers);
  driver_.NotifyAll();
}

void Mesh::GiveUp(MeshTransfer* transfer) {
  MutexLock lock(driver_.mutex);
  driver_.reactor().GiveUp(transfer);
  driver_.NotifyAll();
}

// ---- waiting

Status Mesh::Wait(MeshHandle& handle, TimePoint deadline, std::span<const uint32_t> group) {
  return WaitAll({&handle, 1}, deadline, group);
}

bool Mesh::IsOver(const MeshHandle& handle) {
  MutexLock lock(driver_.mutex);
  return handle.transfer_ == nullptr || handle.transfer_->done;
}

Status Mesh::WaitAll(std::span<MeshHandle> handles, TimePoint deadline,
                     std::span<const uint32_t> group, MeshAfter after) {
  MeshWaiter waiter{.handles = handles,
                    .deadline = deadline,
                    .returns = after == MeshAfter::kReturns,
                    .group = group};
  return driver_.WaitFor(waiter);
}

Status Mesh::WaitWhileMoving(std::span<MeshHandle> handles, Duration idle_limit,
                             std::span<const uint32_t> group, MeshAfter after) {
  if (idle_limit == kNoLimit) return WaitAll(handles, TimePoint::max(), group, after);
  IdleLimit idle(idle_limit, MovedWith(group), SteadyNow());
  for (;;) {
    Status done = WaitAll(handles, idle.next_look(), group, after);
    if (done.code() != Code::kInProgress || idle.Over(MovedWith(group), SteadyNow())) return done;
  }
}

uint64_t Mesh::MovedWith(std::span<const uint32_t> group) {
  MutexLock lock(driver_.mutex);
  return driver_.reactor().MovedWith(group);
}

Result<MeshMessage> Mesh::ReceiveSmall(uint32_t peer, MeshTag tag, TimePoint deadline,
                                       MeshPatience patience) {
  MeshTransfer transfer{.kind = MeshTransfer::Kind::kReceiveSmall, .peer = peer, .tag = tag};
  MeshTransfer* const alone = &transfer;
  MeshWaiter waiter{.alone = alone,
                    .deadline = deadline,
                    .patient = true,
                    .spins = patience == MeshPatience::kSpins};
  MutexLock lock(driver_.mutex);
  BeginLocked({&alone, 1});
  Status received = driver_.WaitFor(waiter, lock);
  if (received.ok()) return MeshMessage{transfer.peer, std::move(transfer.small)};
  driver_.reactor().GiveUp(alone);
  return received;
}

}  // namespace hvd
