#include "configs/option_parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

namespace hvd {
namespace {

// CLI11 takes its arguments in reverse order.
std::vector<std::string> CanonicalArguments(const NormalisedArgv& argv) {
  std::vector<std::string> canonical;
  for (const GivenOption& option : argv.options) {
    std::string flag = "--" + std::string(option.row->name);
    if (option.value && option.value->empty()) {  // CLI11 takes "--x=" for a value that is missing
      canonical.push_back(flag);
      canonical.emplace_back();
      continue;
    }
    canonical.push_back(option.value ? flag + "=" + *option.value : flag);
  }
  std::reverse(canonical.begin(), canonical.end());
  return canonical;
}

// Refuses two flags of one group, or both flags of an on/off pair.
Status CheckExclusive(const NormalisedArgv& argv) {
  for (auto later = argv.options.begin(); later != argv.options.end(); ++later) {
    for (auto earlier = argv.options.begin(); earlier != later; ++earlier) {
      const Row& row = *later->row;
      bool same_group =
          &row != earlier->row && !row.group.empty() && row.group == earlier->row->group;
      bool contradicts =
          &row == earlier->row && row.type == Type::kBool && later->value != earlier->value;
      if (!same_group && !contradicts) continue;
      return InvalidArgument(earlier->typed + " and " + later->typed +
                             " exclude each other: keep one of them");
    }
  }
  return Status::Ok();
}

void AddRow(CLI::App& app, const Row& row) {
  std::string flag = "--" + std::string(row.name);
  if (row.type == Type::kAction) {
    app.add_flag(flag);
  } else {
    app.add_option(flag)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
}

// Each row once.
std::vector<const Row*> RowsIn(const NormalisedArgv& argv) {
  std::vector<const Row*> rows;
  for (const GivenOption& option : argv.options) {
    if (std::ranges::find(rows, option.row) == rows.end()) rows.push_back(option.row);
  }
  return rows;
}

std::string LastSpelling(const NormalisedArgv& argv, const Row& row) {
  auto found = std::find_if(argv.options.rbegin(), argv.options.rend(),
                            [&](const GivenOption& option) { return option.row == &row; });
  return found->typed;
}

void Collect(const CLI::App& app, const NormalisedArgv& argv, const Row& row, ParsedOptions& out) {
  const CLI::Option* option = app.get_option("--" + std::string(row.name));
  if (option->count() == 0) return;
  if (const Action* action = std::get_if<Action>(&row.target)) {
    if (!EndsReading(out.action)) out.action = *action;
    return;
  }
  out.values[row.name] = {.typed = LastSpelling(argv, row),
                          .text = option->results().back(),
                          .texts = option->results()};
}

}  // namespace

Result<ParsedOptions> ParseOptions(std::span<const std::string> args, std::span<const Row> rows) {
  Result<NormalisedArgv> argv = NormaliseArgv(args, rows);
  if (!argv.ok()) return argv.status();
  HVD_RETURN_IF_ERROR(CheckExclusive(*argv));
  ParsedOptions out;
  try {
    CLI::App app;
    app.set_help_flag();
    // Adding all rows would take CLI11 longer than everything else that hvdrun reads at its start.
    const std::vector<const Row*> given = RowsIn(*argv);
    for (const Row* row : given) AddRow(app, *row);
    app.parse(CanonicalArguments(*argv));
    for (const Row* row : given) Collect(app, *argv, *row, out);
  } catch (const CLI::Error& error) {
    return InvalidArgument(error.what());
  }
  out.command = std::move(argv->command);
  return out;
}

}  // namespace hvd
