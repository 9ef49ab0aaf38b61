#include "launcher/job/host_records/stage_words.h"

#include <algorithm>

namespace hvd {

using std::chrono::seconds;

const StageTexts kStageTexts[kHostStages] = {
    {"resolve", "resolving its name", seconds(20), "does the name server answer?"},
    {"connect", "connecting", seconds(10),
     "is the host up, and does a firewall let the port of ssh through?"},
    {"kex", "agreeing on keys", seconds(10), "is its sshd overloaded?"},
    {"hostkey", "checking its host key", seconds(10), "is its sshd overloaded?"},
    {"login", "logging in", seconds(20), "does its sshd wait for a directory service?"},
    {"exec", "starting the agent", seconds(20), "does a start-up file of its shell wait?"},
    {"bundle", "receiving hvdrun", seconds(60), "is the way to it stuck, or its disk?"},
    {"hello", "waiting for the agent's first word", seconds(30), "is the host overloaded?"},
    {"proof", "looking for an address at which the hosts reach each other", seconds(30),
     "does a firewall drop what goes between the hosts?"},
};

const StageTexts& TextsOf(HostStage stage) {
  return kStageTexts[std::min(static_cast<size_t>(stage), kHostStages - 1)];
}

HostStage StageOf(ChannelStage stage) {
  switch (stage) {
    case ChannelStage::kResolve: return HostStage::kResolve;
    case ChannelStage::kConnect: return HostStage::kConnect;
    case ChannelStage::kKeyExchange: return HostStage::kKeyExchange;
    case ChannelStage::kHostKey: return HostStage::kHostKey;
    case ChannelStage::kLogin: return HostStage::kLogin;
    case ChannelStage::kExec: return HostStage::kExec;
    case ChannelStage::kRunning:
    case ChannelStage::kClosed: return HostStage::kHello;
  }
  return HostStage::kHello;
}

const char* StageName(HostStage stage) {
  return stage < HostStage::kThere ? TextsOf(stage).name : StageText(stage);
}

const char* StageText(HostStage stage) {
  if (stage == HostStage::kThere || stage == HostStage::kReady) return "ready";
  return stage == HostStage::kFailed ? "failed" : TextsOf(stage).text;
}

}  // namespace hvd
