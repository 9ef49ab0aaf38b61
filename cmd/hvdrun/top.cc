// hvdrun top: the state of a running job, updated every second.
#include <unistd.h>

#include <ctime>
#include <optional>

#include "cmd/hvdrun/verbs.h"
#include "launcher/live/external_views.h"
#include "launcher/live/top_screen.h"
#include "launcher/live/view_client.h"
#include "launcher/live/view_json.h"
#include "launcher/live/view_server.h"
#include "launcher/live/view_table.h"
#include "launcher/output/output.h"
#include "launcher/process/jobs/local_jobs.h"
#include "runtime/base/colours.h"
#include "runtime/base/env.h"

namespace hvd {
namespace {

// A driver publishes a view each second.
constexpr Duration kPatience = std::chrono::seconds(15);
// Rates need two samples; a job whose ranks are still starting has none.
constexpr int kMostViewsForOnce = 3;

struct TopOptions {
  std::string job;
  bool once = false, json = false;
};

Result<TopOptions> ParseTopOptions(const std::vector<std::string>& args) {
  TopOptions options;
  for (const std::string& word : args) {
    if (word == "--once") {
      options.once = true;
    } else if (word == "--json") {
      options.json = true;
    } else if (word.empty() || word[0] == '-' || !options.job.empty()) {
      return InvalidArgument("takes the id of one job, --once and --json; try hvdrun top --help");
    } else {
      options.job = word;
    }
  }
  return options;
}

bool HasRates(const JobView& view) {
  for (const RankView& rank : view.ranks) {
    if (rank.rates) return true;
  }
  return false;
}

std::string ClockText(double time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char room[16];
  std::strftime(room, sizeof room, "%H:%M:%S", &parts);
  return room;
}

// The next view; if there is none, the status of the connection.
Result<JobView> Next(ViewClient& client, std::string* line) {
  while (!client.PopLine(line)) {
    if (Status came = client.Receive(kPatience); !came.ok()) return came;
  }
  return ParseViewJson(*line);
}

int Ended(const Status& why) {
  if (why.code() == Code::kAborted) return 0;  // with the job
  return FailVerb(
      "top",
      why.code() == Code::kInProgress ? "hvdrun does not answer; it may be stopped" : why.message(),
      1);
}

int ShowOnce(ViewClient& client, const TopOptions& options) {
  std::string line;
  for (int views = 1;; ++views) {
    const Result<JobView> view = Next(client, &line);
    if (!view.ok()) {
      return view.status().code() == Code::kAborted ? FailVerb("top", "the job has ended", 1)
                                                    : Ended(view.status());
    }
    if (!HasRates(*view) && views < kMostViewsForOnce) continue;
    return PrintText(options.json ? line + "\n" : ViewTable(*view, {}, false));
  }
}

// One line for each view.
int ShowLines(ViewClient& client, const TopOptions& options) {
  std::string line;
  for (;;) {
    const Result<JobView> view = Next(client, &line);
    if (!view.ok()) return Ended(view.status());
    const std::string text =
        options.json ? line : ClockText(view->time) + "  " + ViewSummary(*view);
    if (!WriteAll(STDOUT_FILENO, text + "\n")) return 0;  // nobody reads it any more
  }
}

int ShowTables(ViewClient& client) {
  std::string last;
  Status end;
  {
    TopScreen screen(STDIN_FILENO, STDOUT_FILENO);
    std::string line;
    int idle_seconds = 0;
    while (end.ok()) {
      const TopScreen::Event event = screen.Wait(client.socket(), 1000);
      if (event == TopScreen::Event::kLeave) return 0;
      const Status came = client.Receive(Duration{});
      if (came.ok()) idle_seconds = 0;
      if (event == TopScreen::Event::kNothing) ++idle_seconds;
      const bool silent = std::chrono::seconds(idle_seconds) > kPatience;
      if (came.code() != Code::kInProgress || silent) end = came;
      while (client.PopLine(&line)) {
        const Result<JobView> view = ParseViewJson(line);
        if (!view.ok()) {
          end = view.status();
          break;
        }
        screen.Show(ViewTable(*view, screen.size(), WantsColours(STDOUT_FILENO)));
        last = ViewTable(*view, {}, false);
      }
    }
  }
  // The job has ended: its last view stays on the screen.
  if (end.code() == Code::kAborted) return PrintText(last + "the job has ended\n");
  return Ended(end);
}

bool OnTerminal() {
  return ::isatty(STDOUT_FILENO) == 1 && GetEnv("TERM").value_or("dumb") != "dumb";
}

}  // namespace

int TopVerb(const std::vector<std::string>& args) {
  const Result<TopOptions> options = ParseTopOptions(args);
  if (!options.ok()) return FailVerb("top", options.status().message());
  const Result<std::string> job = FindView(ListJobs(), ListExternalViews(), JobIdFor(options->job));
  if (!job.ok()) return FailVerb("top", job.status().message());
  Result<ViewClient> client = ViewClient::Ask(*job, kAskTop);
  if (!client.ok()) return FailVerb("top", client.status().message(), 1);
  if (options->once) return ShowOnce(*client, *options);
  return options->json || !OnTerminal() ? ShowLines(*client, *options) : ShowTables(*client);
}

}  // namespace hvd
