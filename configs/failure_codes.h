// Stable codes for why a job failed: in the last line of a failed job and in the file of
// --error-file; explained by `hvdrun explain CODE` and docs/failure-codes.md. Codes are never
// reused. Pure.
#ifndef HVD_CONFIGS_FAILURE_CODES_H_
#define HVD_CONFIGS_FAILURE_CODES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct FailureCode {
  std::string_view code;                // "HVD102"
  std::string_view name;                // "rank-signal"
  std::string_view kind;                // "kind" of the error file; empty: there is no such file
  std::string_view exit_code;           // of hvdrun: "79", "128 + n"
  std::string_view what;                // one sentence
  std::vector<std::string_view> cures;  // what to try, a sentence each
  std::string_view page;                // of docs/
};

std::span<const FailureCode> FailureCodes();
// By code or name, ignoring case; null: none.
const FailureCode* FindFailureCode(std::string_view word);

// For hvdrun explain: all codes; one code or exit code; empty: unknown.
std::string FailureCodesText();
std::string ExplainText(std::string_view word);
// docs/failure-codes.md.
std::string FailureCodesPage();

}  // namespace hvd

#endif  // HVD_CONFIGS_FAILURE_CODES_H_
