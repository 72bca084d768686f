# A plug-in in the installed program: cmake -DPLUMB=… -DPLUGIN=… -DFOLDER=… -P plugin.cmake
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})

# Runs the program; fails unless it ends with `status` and says `expected`.
function(expect status expected)
  execute_process(COMMAND ${PLUMB} ${ARGN} WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE found OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  string(FIND "${output}" "${expected}" place)
  if(NOT found EQUAL status OR place LESS 0)
    message(FATAL_ERROR "plumb ${ARGN}: status ${found}, expected ${status} and '${expected}':\n${output}")
  endif()
endfunction()

set(tiny --set model.d_model=16 --set model.heads=2 --set model.feed_forward=16 --set model.encoder_layers=1
  --set model.decoder_layers=1 --set task.translation.beam=0)
expect(0 "" data synthesize --pairs 200 --vocabulary 200 --out data -q)

# By an option, in commands that list, measure and train.
expect(0 "y = x/(mean(|x|) + eps)" list norm --load ${PLUGIN})
expect(0 "" probe --data data --load ${PLUGIN} --set model.norm=absolute --seeds 1 --pairs 2 -q ${tiny})
expect(2 "unknown norm 'absolute'" probe --data data --set model.norm=absolute ${tiny})
expect(0 "finished at step 2" train --data data --out run --load ${PLUGIN} --set model.norm=absolute
  --set train.steps=2 -q ${tiny})

# A run remembers that it needs it, and a configuration may say so, relative to itself. Neither loads it by itself.
get_filename_component(library ${PLUGIN} NAME)
file(COPY ${PLUGIN} DESTINATION ${FOLDER})
file(WRITE ${FOLDER}/model.toml "load = [\"${library}\"]\n[model]\nnorm = \"absolute\"\n")
set(configured probe --config model.toml --data data --seeds 1 --pairs 2 -q ${tiny})
expect(1 "needs the library" probe run --pairs 2 -q)
expect(1 "model.toml:1:8: needs the library" ${configured})
expect(0 "finished at step 3" train --out run --load ${PLUGIN} --set train.steps=3 -q)
expect(0 "" ${configured} --load ${PLUGIN})
file(SHA256 ${PLUGIN} digest)
file(WRITE ${FOLDER}/settings/plumb/trusted-libraries "${digest}  ${library}\n")
set(ENV{XDG_CONFIG_HOME} ${FOLDER}/settings)
expect(0 "" probe run --pairs 2 -q)
expect(0 "" ${configured})

# Mistakes.
file(COPY_FILE ${PLUGIN} ${FOLDER}/again.so)
expect(1 "again.so: the norm 'absolute' exists already" list norm --load ${PLUGIN} --load again.so)
file(WRITE ${FOLDER}/missing.toml "load = \"missing.so\"\n")
expect(1 "missing.toml:1:8: needs the library missing.so" probe --config missing.toml --data data)
file(WRITE ${FOLDER}/text.so "no library")
expect(1 "text.so" list norm --load text.so)
expect(0 "libmy-norm.so" new norm my-norm)
expect(1 "my-norm: exists" new norm my-norm)
expect(2 "'My Norm' is no name" new norm "My Norm")
file(READ ${FOLDER}/my-norm/my-norm.cpp source)
if(NOT source MATCHES "class MyNormNorm" OR source MATCHES "bsolute")
  message(FATAL_ERROR "the new norm still has the example's name:\n${source}")
endif()
