// Settings of horovodrun without a counterpart in hvdrun. Each has one answer for flag, variable
// and file: accepted silently, accepted with a line on why it has no effect, or refused with one
// sentence. Pure.
#ifndef HVD_CONFIGS_HOROVOD_SETTINGS_H_
#define HVD_CONFIGS_HOROVOD_SETTINGS_H_

#include <span>
#include <string_view>
#include <vector>

#include "configs/settings_table.h"

namespace hvd {

enum class Answer {
  kAsIs,      // accepted silently: it is so in any case
  kNoEffect,  // accepted; a line says why it has no effect
  kRefused,   // a usage error: the job would differ from the request
};

struct HorovodSetting {
  Row row;  // `default_text` is the value without effect; no target; accepts any value
  Answer answer = Answer::kNoEffect;
  // kNoEffect: completes "--x has no effect: "; kRefused: completes "--x is "; both without a full
  // stop.
  std::string_view reason = {};
};

std::span<const HorovodSetting> HorovodSettings();

// Options of other launchers that are accepted, some only with the value that has no effect.
std::span<const HorovodSetting> LauncherSettings();

// The rows of all of these.
std::span<const Row> HorovodRows();

}  // namespace hvd

#endif  // HVD_CONFIGS_HOROVOD_SETTINGS_H_
