// Options of other launchers: the equivalent here, or why it is not needed. Source of the parser's
// messages and of docs/launcher-words.md. Pure.
#ifndef HVD_CONFIGS_LAUNCHER_WORDS_H_
#define HVD_CONFIGS_LAUNCHER_WORDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hvd {

enum class WordMeaning : uint8_t {
  kAlias,     // `text` is the flag of hvdrun that means the same
  kAlways,    // accepted silently: `text` says why it makes no difference
  kNoEffect,  // accepted with the line "WORD has no effect: TEXT"
  kRefused,   // a usage error: "WORD is an option of LAUNCHERS: TEXT"
};

struct LauncherWord {
  std::string_view word;  // "--map-by"; words with one dash are written with one
  std::string_view launchers;
  WordMeaning meaning = WordMeaning::kRefused;
  std::string_view text;
  int values = 1;                  // number of arguments
  std::string_view harmless = {};  // the value of a refused word that has no effect
  bool per_node = false;           // an alias of -np, per host
};

std::span<const LauncherWord> LauncherWords();

// The entry of a word as typed, also with _ for -, or a long word with one dash. Null: unknown.
const LauncherWord* FindLauncherWord(std::string_view typed);

// "--map-by is an option of mpirun: ...", for a refused word.
std::string RefusalOf(const LauncherWord& word, std::string_view typed);

// The text with -- in front and - for _; "-np" and "-x" stay as they are.
std::string LongSpelling(std::string_view typed);

}  // namespace hvd

#endif  // HVD_CONFIGS_LAUNCHER_WORDS_H_
