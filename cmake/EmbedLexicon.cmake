# Turns the files of src/corpus/lexicon into a C++ source: cmake -DFOLDER=lexicon -DOUTPUT=lexicon_text.cpp -P EmbedLexicon.cmake
file(GLOB files ${FOLDER}/*.txt)
set(entries)
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(FIND "${text}" ")lexicon\"" delimiter)
  if(text STREQUAL "" OR NOT delimiter EQUAL -1)
    message(FATAL_ERROR "${file} is empty or contains the delimiter of the raw string")
  endif()
  string(APPEND entries "  if (name == \"${name}\") return R\"lexicon(${text})lexicon\";\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/EmbedLexicon.cmake from src/corpus/lexicon.
#include \"corpus/lexicon.h\"
#include \"plumb/base/error.h\"

namespace plumb::corpus {

std::string_view lexicon_text(std::string_view name) {
${entries}  throw Error(\"the lexicon has no file '\" + std::string(name) + \"'\");
}

}  // namespace plumb::corpus
")
