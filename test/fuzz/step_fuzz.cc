// Any bytes as what a step of many agents prints, in any pieces, as the words of srun, and as the
// invitation that its agents read.
#include "launcher/channels/srun_command.h"
#include "launcher/channels/step/step_lines.h"
#include "launcher/overlay/dial/invitation.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

void ReadLines(std::string_view bytes) {
  StepLines whole, pieces;
  whole.Add(bytes);
  for (; !bytes.empty(); bytes.remove_prefix(std::min<size_t>(bytes.size(), 7))) {
    pieces.Add(bytes.substr(0, 7));
    while (std::optional<StepLine> line = pieces.Next()) {
      const std::optional<StepLine> same = whole.Next();
      Must(same && same->text == line->text && same->agent_job_id == line->agent_job_id);
      ParseUnconnected(line->text);
    }
  }
  Must(!whole.Next());
}

void ReadInvitationText(std::string_view text) {
  const Result<Invitation> invitation = ParseInvitation(text);
  if (!invitation.ok()) {
    Must(!invitation.status().message().empty());
    return;
  }
  std::string again = InvitationText(*invitation);
  again.pop_back();
  Must(ParseInvitation(again).ok());
}
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string key(64, 'a');
  WriteSeeds(*argc, *argv,
             {"hvdrun-agent 0123456789abcdef\nhvdrun-agent 0123456789abcdf0 wants gzip\n",
              "hvdrun-agent 0123456789abcdef unconnected nobody answers\n",
              "hvdrun-invitation 0123456789abcdef " + key + " boot.1 10.0.0.1:4711 [::1]:80",
              "srun: error: n[1-2]: tasks 0-1: Exited with exit code 137\n",
              "srun: error: Node failure on n1\n",
              "slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026 DUE TO TIME LIMIT ***\n"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ReadLines(text);
  ReadInvitationText(text);
  const std::optional<ChannelEnd> words = ParseSrunOutput(text, "n1");
  Must(!words || !words->reason.empty());
  const ChannelEnd end = ReadSrunStepEnd({0, text, true, false}, "n1");
  Must(end.stage == ChannelStage::kRunning && (!words || end.reason == words->reason));
  return 0;
}
