#include "runtime/backends/gloo/transport.h"

#include <gloo/common/error.h>

namespace hvd {
namespace {

[[noreturn]] void NotServed(const char* what) {
  throw gloo::InvalidOperationException(std::string(what) + " is not served by the mesh");
}

// Gloo's algorithms check that a pair exists, and then use buffers.
class AnyPair final : public gloo::transport::Pair {
 public:
  const gloo::transport::Address& address() const override { NotServed("the address of a pair"); }
  void connect(const std::vector<char>&) override { NotServed("connecting a pair"); }
  void close() override {}
  void setSync(bool, bool) override {}
  std::unique_ptr<gloo::transport::Buffer> createSendBuffer(int, void*, size_t) override {
    NotServed("a bound buffer");
  }
  std::unique_ptr<gloo::transport::Buffer> createRecvBuffer(int, void*, size_t) override {
    NotServed("a bound buffer");
  }
  void send(gloo::transport::UnboundBuffer*, uint64_t, size_t, size_t) override {
    NotServed("sending through a pair");
  }
  void recv(gloo::transport::UnboundBuffer*, uint64_t, size_t, size_t) override {
    NotServed("receiving through a pair");
  }
};

class MeshBuffer final : public gloo::transport::UnboundBuffer {
 public:
  MeshBuffer(MeshTransport& transport, void* data, size_t bytes)
      : gloo::transport::UnboundBuffer(data, bytes), transport_(transport) {}

  void send(int rank, uint64_t slot, size_t offset, size_t bytes) override {
    sends_.push_back(transport_.Send(rank, slot, At(offset), Length(offset, bytes)));
  }
  void recv(int rank, uint64_t slot, size_t offset, size_t bytes) override {
    receives_.push_back(transport_.Receive(rank, slot, At(offset), Length(offset, bytes)));
  }
  void recv(std::vector<int> ranks, uint64_t slot, size_t offset, size_t bytes) override {
    if (ranks.size() != 1) NotServed("receiving from whoever is first");
    recv(ranks[0], slot, offset, bytes);
  }

  // Gloo's own time-outs are ignored: the operation has an idle limit.
  bool waitSend(int*, std::chrono::milliseconds) override { return WaitFirst(sends_); }
  bool waitRecv(int*, std::chrono::milliseconds) override { return WaitFirst(receives_); }
  void abortWaitSend() override { NotServed("aborting one wait"); }
  void abortWaitRecv() override { NotServed("aborting one wait"); }

 private:
  std::byte* At(size_t offset) { return static_cast<std::byte*>(ptr) + offset; }
  size_t Length(size_t offset, size_t bytes) const {
    return bytes == kUnspecifiedByteCount ? size - offset : bytes;
  }
  bool WaitFirst(std::deque<MeshHandle>& handles) {
    if (handles.empty()) NotServed("waiting for nothing");
    MeshHandle first = std::move(handles.front());
    handles.pop_front();
    transport_.Wait(std::move(first));
    return true;
  }

  MeshTransport& transport_;
  std::deque<MeshHandle> sends_, receives_;
};

}  // namespace

MeshTransport::MeshTransport(Mesh& mesh, std::vector<uint32_t> leaders, uint32_t index)
    : gloo::transport::Context(static_cast<int>(index), static_cast<int>(leaders.size())),
      mesh_(mesh),
      leaders_(std::move(leaders)) {
  pairs_.resize(leaders_.size());
  for (auto& pair : pairs_) pair = std::make_unique<AnyPair>();
}

void MeshTransport::Begin(uint64_t channel, Duration idle_limit) {
  channel_ = channel;
  idle_limit_ = idle_limit;
  failure_ = Status::Ok();
}

MeshHandle MeshTransport::Send(int to, uint64_t slot, const void* data, size_t bytes) {
  return mesh_.Send(leaders_.at(static_cast<size_t>(to)), {channel_, slot},
                    {static_cast<const std::byte*>(data), bytes});
}

MeshHandle MeshTransport::Receive(int from, uint64_t slot, void* data, size_t bytes) {
  return mesh_.Receive(leaders_.at(static_cast<size_t>(from)), {channel_, slot},
                       {static_cast<std::byte*>(data), bytes});
}

void MeshTransport::Wait(MeshHandle handle) {
  Status done = mesh_.WaitWhileMoving({&handle, 1}, idle_limit_, leaders_);
  if (done.ok()) return;
  failure_ = std::move(done);
  throw gloo::IoException(failure_.message());
}

std::unique_ptr<gloo::transport::Pair>& MeshTransport::createPair(int) {
  NotServed("making a pair");
}

std::unique_ptr<gloo::transport::UnboundBuffer> MeshTransport::createUnboundBuffer(void* data,
                                                                                   size_t bytes) {
  return std::make_unique<MeshBuffer>(*this, data, bytes);
}

GlooContext::GlooContext(std::shared_ptr<MeshTransport> transport)
    : gloo::Context(transport->rank, transport->size) {
  transportContext_ = std::move(transport);
}

}  // namespace hvd
