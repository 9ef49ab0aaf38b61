// Settings of horovodrun that hvdrun knows and has no field for. Each has one answer,
// wherever it is said (flag, variable, key of a file): it is accepted, with a line that says why it
// has no effect where that may surprise, or, where the wish cannot be met, refused with one
// sentence. Pure.
#ifndef HVD_CONFIGS_HOROVOD_SETTINGS_H_
#define HVD_CONFIGS_HOROVOD_SETTINGS_H_

#include <span>
#include <string_view>
#include <vector>

#include "configs/settings_table.h"

namespace hvd {

enum class Answer {
  kAsIs,      // what it asks for happens anyway: nothing is said
  kNoEffect,  // the job runs without it: a line says why
  kRefused,   // the job would not be the one that was asked for: a usage error
};

struct HorovodSetting {
  Row row;  // its `default_text` is the value that asks for nothing; no target, and every value is
            // taken
  Answer answer = Answer::kNoEffect;
  // kNoEffect: completes "--x has no effect: "; kRefused: completes "--x is "; both without a stop.
  std::string_view reason = {};
};

std::span<const HorovodSetting> HorovodSettings();

// The options of other launchers that are accepted, if only with the value that asks for nothing.
std::span<const HorovodSetting> LauncherSettings();

// The rows of all of these.
std::span<const Row> HorovodRows();

}  // namespace hvd

#endif  // HVD_CONFIGS_HOROVOD_SETTINGS_H_
