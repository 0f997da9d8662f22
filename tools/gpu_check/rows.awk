# Lays out the rows that the parts print (tests/bench/gpu/report.h says how), each figure with its
# target in brackets, and exits with 1 if one misses it. With quiet=1 it judges only.

function met(value, target, words) {
  if (target == "-") return 1
  # What is no finite number reaches nothing.
  if (value !~ /^[-+]?[0-9.]+(e[-+]?[0-9]+)?$/) return 0
  split(target, words, " ")
  if (words[1] == "<=") return value + 0 <= words[2] + 0
  if (words[1] == ">=") return value + 0 >= words[2] + 0
  return 0
}

$1 == "note" && !quiet { print "      " $2 }

$1 == "row" {
  line = sprintf("%-9s  %-28s", $2, $3)
  failed = 0
  for (i = 4; i + 2 <= NF; i += 3) {
    line = line sprintf("  %s %s", $i, $(i + 1))
    if ($(i + 2) != "-") line = line " (" $(i + 2) ")"
    if (!met($(i + 1), $(i + 2))) failed = 1
  }
  missed = missed || failed
  if (!quiet) print (failed ? "FAIL  " : "      ") line
  fflush()
}

END { exit missed ? 1 : 0 }
