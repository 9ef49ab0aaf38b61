// Splits text into lines and words, as views into the argument; ignores a byte order mark and "\r".
#ifndef HVD_DISCOVERY_WORDS_H_
#define HVD_DISCOVERY_WORDS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

std::string_view Trimmed(std::string_view text);

// A to Z as a to z, whatever the locale.
char Lower(char c);
std::string Lowered(std::string_view text);

// Words separated by blanks.
std::vector<std::string_view> Words(std::string_view line);
// Removes and returns the first word of `line`; "": none.
std::string_view PopWord(std::string_view& line);

// Counts the lines of a text from 1.
class LineReader {
 public:
  explicit LineReader(std::string_view text);

  // The next line without its end; nothing after the last.
  std::optional<std::string_view> Next();
  // Number of the line last returned by Next().
  size_t number() const { return number_; }

 private:
  std::string_view rest_;
  size_t number_ = 0;
};

}  // namespace hvd

#endif  // HVD_DISCOVERY_WORDS_H_
