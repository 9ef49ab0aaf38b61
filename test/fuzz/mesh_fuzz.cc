// Any bytes, in any pieces: both sides of the mesh's handshake, its frames into an inbox with
// receives of several kinds, and the record of the directory take them or refuse them. Nobody
// without the key gets through, no byte lands outside the memory that was given, and the bytes kept
// stay within their bound.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/net/mesh/mesh_address.h"
#include "runtime/net/mesh/mesh_boxes.h"
#include "runtime/net/mesh/mesh_handshake.h"
#include "runtime/net/sealed_records.h"
#include "test/fuzz/seeds.h"

namespace {

using namespace hvd;

constexpr size_t kRoom = 100;
constexpr size_t kLargeRoom = kMeshEagerBytes + 100;

void ShakeHands(std::string_view bytes, size_t piece) {
  MeshResponder responder({"a key that is not in the bytes", 1, 2});
  MeshInitiator initiator({"a key that is not in the bytes", 1, 1}, 2);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    std::string_view part = bytes.substr(0, piece);
    Must(initiator.Wanted() > 0);
    if (Result<std::string> proof = initiator.Receive(part); !proof.ok()) return;
    Result<std::string> answer = responder.Receive(part.substr(0, responder.Wanted()));
    if (!answer.ok()) return;
    Must(answer->empty());
  }
}

// Each receive has memory of its own, so that AddressSanitizer sees a byte too many.
struct Posted {
  explicit Posted(MeshTransfer::Kind kind, uint64_t slot, size_t bytes) : memory(bytes) {
    transfer.kind = kind;
    transfer.tag = {1, slot};
    transfer.to = memory.data();
    transfer.bytes = bytes;
  }
  std::vector<std::byte> memory;
  MeshTransfer transfer;
};

// Memory of its own for the window, and no byte more than was asked for.
struct Window final : MeshConsumer {
  std::span<std::byte> window() override { return memory; }
  void Consume(size_t count) override {
    Must(count > 0 && count <= memory.size());
    taken += count;
    Must(taken <= kRoom);
  }
  std::vector<std::byte> memory = std::vector<std::byte>(7);
  size_t taken = 0;
};

void ReadFrames(std::string_view bytes, size_t piece) {
  Window window;
  uint64_t numbered = 0;
  MeshOutbox outbox(numbered);
  MeshAnyReceives any;
  MeshInbox inbox(1, 4096, outbox, any);
  MeshReader reader(inbox);
  std::vector<Posted> posted;
  posted.reserve(4);
  posted.emplace_back(MeshTransfer::Kind::kReceive, 1, kRoom);
  posted.emplace_back(MeshTransfer::Kind::kReceive, 2, kLargeRoom);
  posted.emplace_back(MeshTransfer::Kind::kReceiveSmall, 3, 0);
  posted.emplace_back(MeshTransfer::Kind::kReceive, 6, kRoom);
  posted.back().transfer.consumer = &window;
  for (Posted& p : posted) inbox.Receive(&p.transfer);
  std::array<iovec, 2> room;
  while (!bytes.empty()) {
    size_t pieces = reader.Room(&room);
    if (pieces == 0) {  // held: somebody takes what is kept
      Posted late(MeshTransfer::Kind::kReceive, 1, kRoom);
      inbox.Receive(&late.transfer);
      Status resumed = reader.Resume();
      bool clean = inbox.Cancel(&late.transfer);
      if (!resumed.ok() || !clean || reader.held()) break;
      continue;
    }
    size_t taken = 0;
    for (size_t i = 0; i < pieces && taken < piece; ++i) {
      size_t count = std::min({room[i].iov_len, bytes.size(), piece - taken});
      if (count > 0) std::memcpy(room[i].iov_base, bytes.data(), count);
      bytes.remove_prefix(count);
      taken += count;
    }
    if (!reader.Filled(taken).ok()) break;
  }
  inbox.Fail(Aborted("the end"));
  for (Posted& p : posted) Must(p.transfer.done);
}

// Puts up to `piece` bytes into the reader; false at the end of the connection.
bool Feed(MeshReader& reader, std::string_view& bytes, size_t piece) {
  std::array<iovec, 2> room;
  size_t taken = 0;
  const size_t pieces = reader.Room(&room);
  for (size_t i = 0; i < pieces && taken < piece; ++i) {
    const size_t count = std::min({room[i].iov_len, bytes.size(), piece - taken});
    if (count > 0) std::memcpy(room[i].iov_base, bytes.data(), count);
    bytes.remove_prefix(count);
    taken += count;
  }
  return taken == 0 || reader.Filled(taken).ok();
}

// The frames of one peer over both connections, in turn.
void ReadTwice(std::string_view bytes, size_t piece) {
  uint64_t numbered = 0;
  MeshOutbox outbox(numbered);
  MeshAnyReceives any;
  MeshInbox inbox(1, 4096, outbox, any);
  MeshReader readers[] = {MeshReader(inbox), MeshReader(inbox)};
  std::string_view halves[] = {bytes.substr(0, bytes.size() / 2), bytes.substr(bytes.size() / 2)};
  Posted posted(MeshTransfer::Kind::kReceive, 1, kRoom);
  inbox.Receive(&posted.transfer);
  for (size_t before = SIZE_MAX; std::exchange(before, halves[0].size() + halves[1].size()) !=
                                 halves[0].size() + halves[1].size();) {
    bool well = true;
    for (int i = 0; i < 2; ++i)
      well = well && readers[i].Resume().ok() && Feed(readers[i], halves[i], piece);
    if (!well) break;
  }
  inbox.Fail(Aborted("the end"));
  Must(posted.transfer.done);
}

void ReadRecord(std::string_view bytes) {
  Result<MeshRecord> record = DecodeMeshRecord(bytes);
  if (!record.ok()) return;
  Must(record->endpoints.size() <= 32);
  Must(DecodeMeshRecord(EncodeMeshRecord(*record)).ok());
  for (const MeshAddress& address : Reachable(*record, "here")) {
    Must(ParseMeshEndpoint(address.Text()).ok());
  }
}

// Nothing opens that was not sealed, and a sealed record opens until the first foreign byte.
void OpenRecords(std::string_view bytes, size_t piece) {
  const std::string key(kRecordKeyBytes, 'k');
  std::string genuine, plain;
  Must(RecordSealer(key).Seal("genuine", genuine).ok());
  RecordOpener opener(key), after(key);
  Must(after.Open(genuine, plain).ok() && plain == "genuine");
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    (void)opener.Open(bytes.substr(0, piece), plain);
    (void)after.Open(bytes.substr(0, piece), plain);
    Must(plain == "genuine");
  }
}

std::string FrameOf(MeshFrameType type, uint64_t slot, size_t bytes, uint64_t number) {
  MeshHeader header = EncodeMeshHeader({type, bytes, {1, slot}, number});
  return std::string(reinterpret_cast<const char*>(header.data()), header.size()) +
         std::string(bytes, 'p');
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using enum MeshFrameType;
  std::string talk = FrameOf(kData, 1, kRoom, 1) + FrameOf(kData, 6, kRoom, 2) +
                     FrameOf(kData, 3, 10, 3) + FrameOf(kData, 4, 0, 4) + FrameOf(kReady, 9, 0, 0) +
                     FrameOf(kGone, 0, 0, 5) + FrameOf(kBye, 0, 5, 6);
  std::string crowd = "\x01\x20", odd, even;
  for (uint64_t i = 1; i <= 20; ++i) {
    crowd += FrameOf(kData, 5, 200, i);
    (i % 2 == 1 ? odd : even) += FrameOf(kData, i % 3, 20, i);
  }
  WriteSeeds(
      *argc, *argv,
      {std::string("\0\x08", 2) + MeshInitiator({"key", 1, 1}, 2).hello(), "\x01\xff" + talk,
       "\x01\x01" + talk, crowd, "\x02 boot.1 10.0.0.1:4711 [2001:db8::1]:4711 127.0.0.1:4711",
       "\x04\x30" + odd + even, std::string("\x03\x08\x05\0\0\0hello0123456789abcdef", 27)});
  return 0;
}

// The first byte says what is looked at, the second how long the pieces are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  size_t piece = 1 + size_t{data[1]};
  switch (data[0] % 5) {
    case 0: ShakeHands(bytes, piece); break;
    case 1: ReadFrames(bytes, piece); break;
    case 3: OpenRecords(bytes, piece); break;
    case 4: ReadTwice(bytes, piece); break;
    default: ReadRecord(bytes);
  }
  return 0;
}
