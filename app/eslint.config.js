// The tools stand in the project's environment (see the Makefile), which is not above these files: BROWSER_CHECKS
// names the folder that they are found from.
import { createRequire } from "node:module";
import { join } from "node:path";
import { env } from "node:process";

const tools = createRequire(join(env.BROWSER_CHECKS ?? import.meta.dirname, "package.json"));
const css = tools("@eslint/css").default;
const js = tools("@eslint/js");
const globals = tools("globals");

export default [
  { ignores: ["app/site/**", "site/**"] },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  {
    files: ["**/*.js"],
    ...js.configs.recommended,
    languageOptions: { globals: globals.browser },
    rules: {
      ...js.configs.recommended.rules,
      "array-callback-return": "error",
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-implicit-globals": "error",
      "no-restricted-properties": ["error", { property: "innerHTML", message: "Text from runs is shown as text." }],
      "no-shadow": "error",
      "no-unused-expressions": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
    },
  },
  {
    files: ["**/*.css"],
    plugins: { css },
    language: "css/css",
    rules: {
      ...css.configs.recommended.rules,
      "css/no-invalid-properties": ["error", { allowUnknownVariables: true }], // Streamlit sets the --st- ones
      "css/use-baseline": ["error", { allowProperties: ["accent-color"] }], // without it a bar has the browser's colour
    },
  },
];
