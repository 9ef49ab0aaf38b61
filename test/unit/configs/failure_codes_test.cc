// The table of failure codes: complete, within 80 columns, and the same as the page. Runs in the
// root of the repository.
#include "configs/failure_codes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "configs/man_sections.h"
#include "runtime/base/exit_status.h"

namespace hvd {
namespace {

void ExpectNarrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(FailureCodes, EachHasANameOfItsOwnACauseAndACure) {
  std::set<std::string_view> known;
  for (const FailureCode& code : FailureCodes()) {
    EXPECT_TRUE(code.code.starts_with("HVD") && code.code.size() == 6) << code.code;
    EXPECT_TRUE(known.insert(code.code).second && known.insert(code.name).second) << code.code;
    EXPECT_TRUE(code.what.ends_with('.')) << code.code;
    EXPECT_FALSE(code.cures.empty()) << code.code;
    const std::string page(code.page.substr(0, code.page.find('#')));
    EXPECT_TRUE(std::filesystem::exists("docs/" + page)) << page;
  }
}

TEST(FailureCodes, AreExplainedByCodeNameAndExitCode) {
  EXPECT_EQ(ExplainText("hvd102"), ExplainText("rank-signal"));
  EXPECT_NE(ExplainText("HVD102").find("rank-signal, exit code 128 + n"), std::string::npos);
  EXPECT_NE(ExplainText("79").find("HVD401"), std::string::npos);
  EXPECT_EQ(ExplainText("79").find("HVD302"), std::string::npos);
  EXPECT_TRUE(
      ExplainText("139").starts_with("Exit code 139: Signal 11 (Segmentation fault) ended"));
  EXPECT_NE(ExplainText("137").find("HVD103"), std::string::npos);
  EXPECT_NE(ExplainText("143").find("HVD301"), std::string::npos);
  EXPECT_NE(ExplainText("2").find("HVD001"), std::string::npos);
  EXPECT_EQ(ExplainText("2").find("HVD102"), std::string::npos);
  EXPECT_TRUE(ExplainText("3").starts_with("Exit code 3: That of the first rank"));
  for (const char* word : {"", "x", "HVD999", "256", "-1", "1 2"}) EXPECT_EQ(ExplainText(word), "");
}

TEST(FailureCodes, FitATerminal) {
  ExpectNarrow(FailureCodesText());
  for (const FailureCode& code : FailureCodes()) ExpectNarrow(ExplainText(code.code));
  for (int value = 0; value < 256; ++value) ExpectNarrow(ExplainText(std::to_string(value)));
}

TEST(FailureCodes, ExitCodesOfHvdrunAreExplained) {
  for (int value : {kFailedExitCode, kUsageError, kStoppedExitCode, kStalledExitCode,
                    kTimedOutExitCode, kCommandNotExecutable, kCommandNotFound}) {
    bool found = false;
    for (const ManRow& row : ExitStatusRows()) found |= row.term == std::to_string(value);
    EXPECT_TRUE(found) << value;
    EXPECT_NE(ExplainText(std::to_string(value)).find("\n  HVD"), std::string::npos) << value;
  }
}

TEST(FailureCodes, ThePageIsUpToDate) {
  std::ifstream file("docs/failure-codes.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), FailureCodesPage())
      << "run build/bin/hvdrun_texts failures > docs/failure-codes.md";
}

}  // namespace
}  // namespace hvd
