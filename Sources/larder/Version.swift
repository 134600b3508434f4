/// Of this program, as HELLO, WELCOME and `--version` say it.
let larderVersion = "0.1.0"
