// hvdrun help: the help of a verb, or of a section of the options; hvdrun explain; and what
// --version prints.
#include "cmd/hvdrun/commit.h"
#include "cmd/hvdrun/verbs.h"
#include "configs/failure_codes.h"
#include "configs/help_text.h"
#include "configs/message_text.h"
#include "configs/settings_table.h"
#include "configs/verb_list.h"

namespace hvd {

int HelpVerb(const std::vector<std::string>& args) {
  const std::span<const Row> rows = SettingRowsOf(Verb::kRun);
  if (args.empty()) return PrintText(HelpText(rows));
  if (args.size() > 1) return FailVerb("help", "takes one verb or section; try hvdrun help hosts");
  const std::string text = HelpTextOf(args[0], rows);
  if (!text.empty()) return PrintText(text);
  return FailVerb("help", Quoted(args[0]) + " is neither a verb (" + VerbNames() +
                              ") nor a section (" + HelpTopics() + ")");
}

int ExplainVerb(const std::vector<std::string>& args) {
  if (args.empty()) return PrintText(FailureCodesText());
  if (args.size() > 1) return FailVerb("explain", "takes one code; try hvdrun explain HVD102");
  const std::string text = ExplainText(args[0]);
  if (!text.empty()) return PrintText(text);
  return FailVerb("explain", Quoted(args[0]) +
                                 " is neither a code nor an exit code of 0 to 255; "
                                 "hvdrun explain lists the codes");
}

std::string VersionText() {
  const std::string commit = HVD_COMMIT;  // "7263244d 2026-11-28", or empty
  return "hvdrun " HVD_VERSION + (commit.empty() ? "" : " (" + commit + ")") +
         ", API of Horovod 0.28\n";
}

}  // namespace hvd
