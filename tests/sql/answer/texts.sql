-- Text: LIKE, regular expressions, functions of text.
-- table: people

select count(*) from people where nationality like 'K%'

select count(*) from people where nationality like '_e%'

select count(*) from people where nationality not like '%a'

select count(*) from people where nationality ilike 'k%A'

select count(*) from people where nationality not ilike '%N%'

select count(*) from people where "größe" like '100!%' escape '!'

select count(*) from people where "größe" like '%''%'

select count(*) from people where nationality ~ '^[A-K].*a$'

select count(*) from people where nationality ~ 'ha'

select count(*) from people where regexp_matches(nationality, '(a|e)n')

select count(*) from people where nationality similar to '(K|G).*'

select count(*) from people where nationality glob '*an*'

select count(*) from people where starts_with(nationality, 'C')

select count(*) from people where ends_with(nationality, 'a') or suffix(nationality, 'd')

select count(*) from people where contains(nationality, 'an')

select count(*) from people where prefix("größe", 'n')

select count(*) from people where lower(nationality) = 'kenya'

select count(*) from people where upper("größe") = 'S' or upper("größe") = 'NAÏVE'

select count(*) from people where length(nationality) > 5

select count(*) from people where length("größe") = 1

select count(*) from people where substring(nationality, 2, 2) = 'en'

select count(*) from people where substr(nationality, 1, 1) in ('K', 'G', 'T')

select count(*) from people where left(nationality, 1) = 'B' or right(nationality, 1) = 'y'

select count(*) from people where regexp_full_match(nationality, 'K.*a')

select count(*) from people where trim('  ' || nationality || ' ') = 'Peru'

select count(*) from people where ltrim(nationality, 'K') = 'enya' or rtrim(nationality, 'a') = 'Keny'

select count(*) from people where nationality || '-' || "größe" = 'Peru-S'

select count(*) from people where concat(nationality, "größe") = 'PeruS' or concat(nationality, "größe") = 'S'

select count(*) from people where concat_ws('/', nationality, "größe", age) like 'Peru/_/3%'

select count(*) from people where replace(nationality, 'a', 'o') like '%o%o%' or reverse(nationality) = 'urep'

select count(*) from people where strpos(nationality, 'a') = 3 or instr(nationality, 'n') = 2

select count(*) from people where position('a' in nationality) > 3

select count(*) from people where split_part(nationality, ' ', 2) = 'd''Ivoire'

select count(*) from people where regexp_extract(nationality, '^(.)', 1) = 'I'

select count(*) from people where regexp_replace(nationality, '[aeiou]', '') = 'Knya'

select count(*) from people where lpad(age::varchar, 4, '0') = '0033'

select count(*) from people where levenshtein(nationality, 'Ghama') <= 1

select count(*) from people where ascii("größe") = 77 or chr(ascii("größe")) = 'S'

select count(*) from people where translate(nationality, 'ae', 'AE') = 'KEnyA'

select count(*) from people where strip_accents(nationality) = 'Turkiye' or "größe" = 'naïve'

select count(*) from people where nationality between 'C' and 'H'

select count(*) from people where nationality < "größe"

select count(*) from people where nationality in ('Türkiye', 'Norway') and "größe" in ('S', 'it''s')

select count(*) from people where coalesce(nationality, 'none') = 'none'
