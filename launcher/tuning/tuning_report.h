// The page of --autotune-report: the score of each window, how speed depends on the settings, the
// chosen point and its gain. Pure text.
#ifndef HVD_LAUNCHER_TUNING_TUNING_REPORT_H_
#define HVD_LAUNCHER_TUNING_TUNING_REPORT_H_

#include <string>
#include <vector>

#include "autotune/tuner.h"
#include "launcher/tuning/tuned_axes.h"
#include "launcher/tuning/tuning_log.h"

namespace hvd {

// The state of a search; `windows` since the generation began, in order. `sentence`: its outcome as
// text; empty while it runs.
std::string TuningPage(const std::vector<TuningRow>& windows, const std::vector<TuneAxis>& axes,
                       const Tuner& tuner, const TunedWorld& world, const std::string& sentence);

}  // namespace hvd

#endif  // HVD_LAUNCHER_TUNING_TUNING_REPORT_H_
