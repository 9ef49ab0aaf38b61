// The options of other launchers that people type: for each, what it is here, or why it is not
// needed. The parser's answers and docs/launcher-words.md are made from this table. Pure.
#ifndef HVD_CONFIGS_LAUNCHER_WORDS_H_
#define HVD_CONFIGS_LAUNCHER_WORDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hvd {

enum class WordMeaning : uint8_t {
  kAlias,     // `text` is the flag of hvdrun that means the same
  kAlways,    // accepted in silence: `text` says why it makes no difference
  kNoEffect,  // accepted with the line "WORD has no effect: TEXT"
  kRefused,   // a usage error: "WORD is an option of LAUNCHERS: TEXT"
};

struct LauncherWord {
  std::string_view word;  // "--map-by"; words of one dash are spelt with one
  std::string_view launchers;
  WordMeaning meaning = WordMeaning::kRefused;
  std::string_view text;
  int values = 1;                  // how many words follow it
  std::string_view harmless = {};  // the value with which a refused word asks for nothing
  bool per_node = false;           // an alias of -np that counts the processes of one host
};

std::span<const LauncherWord> LauncherWords();

// The entry of a word as it was typed: with _ for -, or with one dash in front of a long word, as
// some launchers spell theirs. Null: no launcher has it.
const LauncherWord* FindLauncherWord(std::string_view said);

// "--map-by is an option of mpirun: ...", of a word that is refused.
std::string RefusalOf(const LauncherWord& word, std::string_view said);

// The text with -- in front and - for _; "-np" and "-x" stay as they are.
std::string LongSpelling(std::string_view said);

}  // namespace hvd

#endif  // HVD_CONFIGS_LAUNCHER_WORDS_H_
