// Any bytes as what a neighbour in the tree of agents says, once its records are open: frames of a
// stream, then batches from below or messages from above. A node passes on only messages that may
// be passed on, and to those whom they may concern.
#include "launcher/overlay/tree/agent_tree.h"
#include "runtime/net/stream.h"
#include "test/fakes/host_of_rank.h"
#include "test/fuzz/seeds.h"

namespace {

using namespace hvd;

// Seven hosts in twos, two ranks each; host 1 has host 2 below it and is below host 0.
const HostOfRank kHosts = ByRank({0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6});

class Fuzzed {
 public:
  Fuzzed() { Must(node_.FromAbove({{{1, 3, EncodeToAgent(BeginGeneration{1})}}}).ok()); }

  void Below(std::string_view bytes) {
    Result<ToDriver> message = DecodeToDriver(bytes);
    if (auto* up = message.ok() ? std::get_if<TreeUp>(&*message) : nullptr)
      (void)node_.FromBelow(2, std::move(*up));
    Check();
  }

  void Above(std::string_view bytes) {
    Result<ToAgent> message = DecodeToAgent(bytes);
    if (const auto* down = message.ok() ? std::get_if<TreeDown>(&*message) : nullptr)
      (void)node_.FromAbove(*down);
    Check();
  }

 private:
  void Check() {
    const TreeUp up = node_.PopUpward();
    TreeNode above(0, PlaceInTree(0, 7, 2), kHosts);
    Must(above.FromBelow(1, up).ok());  // an honest node is never refused
    for (const auto& [child, down] : node_.PopDownward()) {
      Must(child == 2);
      TreeNode below(2, PlaceInTree(2, 7, 2), kHosts);
      Must(below.FromAbove(down).ok());
    }
    for (const ToAgent& own : node_.PopOwn()) Must(GoesByTree(own));
  }

  TreeNode node_{1, PlaceInTree(1, 7, 2), kHosts};
};

std::string Framed(const std::string& message) {
  std::string wire;
  AppendFrame(wire, {.type = FrameType::kHello}, std::string("\2\0\0\0\0\0\0\0\0\0\0\0", 12));
  AppendFrame(wire, {.type = FrameType::kControl, .sequence = 1}, message);
  return wire;
}

std::string UpOf(uint32_t host, const ToDriver& message) {
  return EncodeToDriver(TreeUp{{{host, EncodeToDriver(message)}}});
}

std::string DownOf(uint32_t first, uint32_t end, const ToAgent& message) {
  return EncodeToAgent(TreeDown{{{first, end, EncodeToAgent(message)}}});
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::vector<std::string> seeds;
  for (const std::string& up :
       {UpOf(2, WorkerStarted{4, 1}), UpOf(2, RankJoined{4}), UpOf(2, RanksJoined{{{4, 2}}}),
        UpOf(2, RankLost{5, 1, 1, 1, "gone"}), UpOf(2, WorkerExited{5, 1}),
        UpOf(2, PutKey{1, "mesh.4", "here"}), UpOf(2, WantKey{1, "mesh.0"}),
        UpOf(2, AgentGone{})}) {
    seeds.push_back("\1" + up);
    seeds.push_back("\3" + Framed(up));
  }
  for (const std::string& down :
       {DownOf(1, 3, BeginGeneration{2}), DownOf(1, 2, KeyValue{1, "mesh.0", "there"}),
        DownOf(1, 3, Resend{}), DownOf(1, 3, SignalWorkers{9})}) {
    seeds.push_back(std::string(1, '\0') + down);
    seeds.push_back("\2" + Framed(down));
  }
  WriteSeeds(*argc, *argv, seeds);
  return 0;
}

// The first byte says from where it comes (bit 0), and whether it is in frames (bit 1).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool below = (data[0] & 1) != 0;
  Fuzzed fuzzed;
  if ((data[0] & 2) == 0) {
    below ? fuzzed.Below(bytes) : fuzzed.Above(bytes);
    return 0;
  }
  Stream stream({});
  stream.Attach({});
  (void)stream.Receive(bytes, {});
  while (std::optional<StreamMessage> message = stream.Next())
    below ? fuzzed.Below(message->bytes) : fuzzed.Above(message->bytes);
  return 0;
}
