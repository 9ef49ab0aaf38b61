// tuning_surface: lets any search loose on the surfaces of test/sim, for tuning_search.py.
//
//   tuning_surface names
//   tuning_surface tuner SURFACE NOISE WINDOWS SEED ERROR   the search of --autotune, with a
//     prediction that is off by ERROR; -1: none
//   tuning_surface play SURFACE NOISE WINDOWS SEED          prints the axes, then reads from stdin:
//     run V...      a window with these values; its score is printed
//     choose V...   the search is over
//
// A search that is over prints "regret lost risked": risked is 1 after two windows in a row that
// were 10 % below the default.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "test/sim/tuning_surfaces.h"

namespace {

using hvd::TuneAxis;
using hvd::TunePoint;

int Fail(std::string_view why) {
  std::fprintf(stderr, "tuning_surface: %.*s\n", static_cast<int>(why.size()), why.data());
  return 2;
}

void PrintRun(const hvd::TuningRun& run) {
  std::printf("%.6f %.6f %d\n", run.regret, run.lost, run.risked ? 1 : 0);
  std::fflush(stdout);
}

void PrintAxes(const hvd::SearchSpace& space) {
  for (const TuneAxis& axis : space.axes()) {
    const char* kind = axis.kind == TuneAxis::Kind::kLog       ? "log"
                       : axis.kind == TuneAxis::Kind::kInteger ? "integer"
                                                               : "category";
    std::printf("%s %s %g %g %g\n", axis.name.c_str(), kind, axis.low, axis.high, axis.initial);
  }
  std::printf("\n");
  std::fflush(stdout);
}

int Play(const hvd::TuningTask& task) {
  const hvd::SearchSpace space = *hvd::SearchSpace::Make(task.surface->axes);
  hvd::PlayedJob job(task, space);
  PrintAxes(space);
  std::string line;
  for (size_t windows = 0; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    TunePoint point;
    for (double value = 0; words >> value;) point.push_back(value);
    if (point.size() != space.axes().size()) return Fail("a point has a value for each axis");
    if (verb == "choose") {
      PrintRun(job.Choose(point));
      return 0;
    }
    if (verb != "run" || ++windows > task.windows) return Fail("'run' as often as WINDOWS");
    std::printf("%.9g\n", job.Run(point));
    std::fflush(stdout);
  }
  return Fail("the search ended without 'choose'");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const std::vector<hvd::TuningSurface> all = hvd::TuningSurfaces();
  if (args.size() == 1 && args[0] == "names") {
    for (const hvd::TuningSurface& surface : all) std::printf("%s\n", surface.name.c_str());
    return 0;
  }
  const bool tuner = args.size() == 6 && args[0] == "tuner";
  if (!tuner && (args.size() != 5 || args[0] != "play")) return Fail("names, tuner or play");
  for (const hvd::TuningSurface& surface : all) {
    if (surface.name != args[1]) continue;
    hvd::TuningTask task{.surface = &surface,
                         .noise = std::atof(args[2].c_str()),
                         .windows = std::strtoull(args[3].c_str(), nullptr, 10),
                         .seed = std::strtoull(args[4].c_str(), nullptr, 10)};
    if (!tuner) return Play(task);
    task.prediction_error = std::atof(args[5].c_str());
    PrintRun(hvd::RunTuner(task));
    return 0;
  }
  return Fail("no such surface");
}
