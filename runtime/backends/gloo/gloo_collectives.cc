#include "runtime/backends/gloo/gloo_collectives.h"

#include <gloo/allgatherv.h>
#include <gloo/alltoallv.h>
#include <gloo/broadcast.h>

#include <exception>

namespace hvd {
GlooCollectives::GlooCollectives(Mesh& mesh, const LeaderGroup& group)
    : transport_(std::make_shared<MeshTransport>(
          mesh, std::vector<uint32_t>(group.leaders.begin(), group.leaders.end()), group.index)),
      context_(std::make_shared<GlooContext>(transport_)) {}

Status GlooCollectives::Run(const InterHostCall& call, const std::function<void()>& body) {
  transport_->Begin(call.tag, call.idle_limit);
  try {
    body();
    return Status::Ok();
  } catch (const std::exception& thrown) {
    if (!transport_->failure().ok()) return transport_->failure();
    return Internal(std::string("Gloo refused an operation: ") + thrown.what());
  }
}

Status GlooCollectives::Broadcast(const InterHostCall& call, uint32_t root, void* data,
                                  size_t bytes) {
  return Run(call, [&] {
    gloo::BroadcastOptions options(context_);
    options.setOutput(static_cast<uint8_t*>(data), bytes);
    options.setRoot(static_cast<int>(root));
    gloo::broadcast(options);
  });
}

Status GlooCollectives::Allgatherv(const InterHostCall& call, const void* input,
                                   std::span<const size_t> bytes, void* output) {
  return Run(call, [&] {
    gloo::AllgathervOptions options(context_);
    size_t offset = 0;
    for (uint32_t i = 0; i < call.group.index; ++i) offset += bytes[i];
    if (input != static_cast<uint8_t*>(output) + offset) {
      options.setInput(static_cast<uint8_t*>(const_cast<void*>(input)), bytes[call.group.index]);
    }
    options.setOutput(static_cast<uint8_t*>(output),
                      std::vector<size_t>(bytes.begin(), bytes.end()));
    gloo::allgatherv(options);
  });
}

Status GlooCollectives::Alltoallv(const InterHostCall& call, const void* input,
                                  std::span<const size_t> send_bytes, void* output,
                                  std::span<const size_t> receive_bytes) {
  return Run(call, [&] {
    gloo::AlltoallvOptions options(context_);
    options.setInput(static_cast<uint8_t*>(const_cast<void*>(input)),
                     std::vector<int64_t>(send_bytes.begin(), send_bytes.end()));
    options.setOutput(static_cast<uint8_t*>(output),
                      std::vector<int64_t>(receive_bytes.begin(), receive_bytes.end()));
    gloo::alltoallv(options);
  });
}

}  // namespace hvd
