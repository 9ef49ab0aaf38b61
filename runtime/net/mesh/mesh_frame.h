// The bytes on a connection of the mesh: frames, and the reader that puts each payload where it
// belongs. Pure: no descriptors, no threads.
#ifndef HVD_RUNTIME_NET_MESH_MESH_FRAME_H_
#define HVD_RUNTIME_NET_MESH_MESH_FRAME_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

// The tag by which a Send and a Receive are matched, within one pair of processes.
struct MeshTag {
  uint64_t channel = 0, slot = 0;
  bool operator==(const MeshTag&) const = default;
};

struct MeshTagHash {
  size_t operator()(const MeshTag& tag) const {
    return (tag.channel * 0x9e3779b97f4a7c15u) ^ (tag.slot + (tag.channel >> 32));
  }
};

enum class MeshFrameType : uint8_t {
  kData = 1,
  kReady = 2,  // the receiver of a large message has room for it
  kBye = 3,    // the peer sends no more; the payload says why, or is empty
  kGone = 4,   // in place of a message that was cancelled before it was sent
};

struct MeshFrame {
  MeshFrameType type = MeshFrameType::kData;
  uint64_t bytes = 0;  // of payload
  MeshTag tag;
  // The index among the frames of its sender to this peer and stripe, from 1 on, over all
  // connections. Of a kReady: 0, it may overtake others.
  uint64_t number = 0;
};

// A partly used cache line: with the fields alone, the kernel would copy payloads from malloc at a
// fraction of its speed (README.md).
inline constexpr size_t kMeshHeaderBytes = 64;
// Up to this size a message is sent at once and kept by the receiver until it is requested.
inline constexpr size_t kMeshEagerBytes = 68 * 1024;
inline constexpr size_t kMaxMeshMessage = size_t{1} << 48;
inline constexpr size_t kMaxByeBytes = 1024;

using MeshHeader = std::array<std::byte, kMeshHeaderBytes>;
MeshHeader EncodeMeshHeader(const MeshFrame& frame);
// kInvalidArgument for anything that no peer of this protocol sends.
Result<MeshFrame> DecodeMeshHeader(const std::byte* bytes);

// Where a payload goes: to one place, or through a reused window.
struct MeshPlace {
  std::byte* to = nullptr;
  size_t window = SIZE_MAX;  // bytes; never 0
};

// Receives the frames.
class MeshSink {
 public:
  virtual ~MeshSink() = default;
  // `to` is null: not now. Not ok: the peer broke the rules.
  virtual Result<MeshPlace> Begin(const MeshFrame& frame) = 0;
  // The next `count` bytes of the payload are in its window, which is full or has the last of them.
  virtual void Consume(size_t count) = 0;
  // The payload is complete.
  virtual Status End(const MeshFrame& frame) = 0;
};

class MeshReader {
 public:
  explicit MeshReader(MeshSink& sink) : sink_(sink) {}

  // Where the next bytes of the connection go; returns how many of the two are used. None while
  // held.
  size_t Room(std::array<iovec, 2>* room);
  // This many bytes were put there. Not ok: the connection is unusable.
  Status Filled(size_t count);
  // The sink said "not now".
  bool held() const { return held_; }
  // Asks the sink again.
  Status Resume();

 private:
  static constexpr size_t kStagingBytes = 16 * 1024;

  Status Parse();
  Status BeginFrame();
  Status EndIfComplete();
  void ReadFromStaging();
  size_t WindowLeft() const;
  void Advance(size_t count);

  MeshSink& sink_;
  std::vector<std::byte> staging_;  // allocated by the first Room: most connections receive little
  size_t begin_ = 0, end_ = 0;      // unread bytes in staging_
  MeshFrame frame_;
  MeshPlace place_;
  size_t in_window_ = 0;  // bytes of the payload at place_
  size_t left_ = 0;       // of frame_'s payload
  bool in_payload_ = false;
  bool held_ = false;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_MESH_MESH_FRAME_H_
