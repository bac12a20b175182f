#!/bin/sh
# Installs a session manager that Grove is compared with: install.sh pi15|pi073|omp FOLDER
#
# Prints the program that runs it, the file of its module and its version. An existing installation is kept. If a
# registry lacks dependencies of the newest version, a part is installed: of pi 1.5 the real session manager with the
# two functions that it imports from pi-ai (their real files), of oh-my-pi the newest complete version.
set -eu
name=$1
mkdir -p "$2/$name"
cd "$2/$name"
modules=$PWD/node_modules

npm_install() {
	timeout 240 npm install --no-audit --no-fund --loglevel=error --prefix . "$@" >npm.log 2>&1
}

# Unpacks a package, without its dependencies, into a folder that node searches.
unpack() {
	timeout 120 npm pack "$1@$2" --loglevel=error >npm.log 2>&1 || return 1
	mkdir -p "$modules/$1"
	tar -xzf "$(grep '\.tgz$' npm.log | tail -n 1)" --strip-components=1 -C "$modules/$1"
}

pi15_reduced() {
	rm -rf "$modules"
	npm_install --ignore-scripts cross-spawn@7 || return 1
	unpack @earendil-works/pi-coding-agent 1.5 || return 1
	unpack @earendil-works/pi-ai 1.5 || return 1
	echo '{"name":"@earendil-works/pi-ai","type":"module","main":"./reduced.js"}' \
		>"$modules/@earendil-works/pi-ai/package.json"
	cat >"$modules/@earendil-works/pi-ai/reduced.js" <<-'END'
		export { getCurrentSystemMessage } from "./dist/utils/transcript.js";
		export { uuidv7 } from "./dist/utils/uuid.js";
	END
}

omp_at() {
	rm -rf "$modules"
	npm_install "@oh-my-pi/pi-coding-agent@$1" bun@1
}

case $name in
pi15)
	program=node
	package=$modules/@earendil-works/pi-coding-agent
	module=$package/dist/core/session-manager.js
	install() { npm_install --ignore-scripts @earendil-works/pi-coding-agent@1.5 || pi15_reduced; }
	;;
pi073)
	program=node
	package=$modules/@mariozechner/pi-coding-agent
	module=$package/dist/core/session-manager.js
	install() { npm_install --ignore-scripts @mariozechner/pi-coding-agent@0.73.1; }
	;;
omp)
	program=$modules/.bin/bun
	package=$modules/@oh-my-pi/pi-coding-agent
	module=$package/src/session/session-manager.ts
	install() { omp_at 18 || omp_at 18.2.3; }
	;;
*)
	echo "unknown: $name" >&2
	exit 2
	;;
esac

if ! [ -f installed ]; then
	command -v npm >/dev/null || { echo "no npm" >&2; exit 1; }
	echo '{"private":true}' >package.json
	if ! install; then
		grep -m 2 'npm error' npm.log >&2 || tail -n 2 npm.log >&2
		exit 1
	fi
	touch installed
fi
version=$(sed -n 's/^[[:space:]]*"version": "\([^"]*\)".*/\1/p' "$package/package.json" | head -n 1)
printf '%s\n%s\n%s\n' "$program" "$module" "$version"
