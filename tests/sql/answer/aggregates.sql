-- Sums, averages, spreads, and arithmetic of them.
-- table: people

select sum(score) from people

select sum(balance) from people where balance < 0

select sum(balance) as total, count(*) as n, avg(balance) from people

select sum("odd name"), count("odd name"), avg("odd name"), count(*) from people

-- Only NULLs: an average of nothing.
select avg("odd name"), count("odd name") from people where "odd name" is null

-- No row at all: count is 0.
select count(*), count(age), avg(age) from people where age > 1000

select sum(age * score), sum(score - age), sum(height * height) from people

select sum(case when member then balance else 0 end) from people

select sum(case when member then balance end) from people

select count(case when member then 1 end) from people

select count(member), count(nationality), count(height), count("odd name") from people

select count(1), count(), count(*) from people

select count(nullif("odd name", 0)) from people

select count_if(age > 40), count_if(member) from people

select countif(score > 90 and balance > 0) from people

select count(*) filter (where age > 40) from people

select count(*) filter (where member) as members, count(*) filter (where not member) as others, count(*) from people

select sum(balance) filter (where balance > 0), sum(balance) filter (where balance < 0) from people

select avg(score) filter (where nationality = 'Kenya') - avg(score) filter (where nationality = 'Ghana') from people

select avg(score) filter (where member), count(*) filter (where "select") from people where age < 30

select mean(score) from people

select avg(age) from people

select avg(score + balance) from people

select avg(cast(member as integer)) from people

select sum(member::int) from people

select 100.0 * count(*) filter (where member) / count(*) as percentage from people

select count(*) filter (where member) / count(member) from people

select sum(balance) / count(*) from people

select sum(balance) / sum(score) from people where age > 30

select (sum(score) - sum(age)) / (count(*) + 1) from people

select count(*) * 2 + 1 from people

select -sum(balance), - count(*) + 5 from people

select abs(sum(balance)), sqrt(count(*)), ln(count(*)), exp(avg(balance) / 10) from people

select power(avg(score), 2), avg(score) ** 2, pow(avg(age), 0.5) from people

select round(avg(score), 2), round(avg(balance)), round(sum(score), -3) from people

select sum(score) / nullif(count(*) filter (where age > 1000), 0) from people

select cast(count(*) as double) / 3, count(*)::double from people

select var_samp(score), var_pop(score), variance(score) from people

select stddev(score), stddev_samp(score), stddev_pop(score) from people

select stddev(balance), variance("odd name"), stddev(height) from people

select var_samp(score - age) filter (where member) from people

-- One person has no spread.
select stddev_pop(balance), stddev(balance) from people where balance = 17

select covar_pop(age, score), covar_samp(age, score) from people

select corr(age, score), corr(score, age), corr(age, balance) from people

select corr(height, "odd name"), covar_samp(height, "odd name") from people

select covar_pop(age, score) / var_pop(age) as slope from people

select avg(score) - covar_pop(age, score) / var_pop(age) * avg(age) as intercept from people

select stddev(score) / avg(score) as variation from people

select sum(1), sum(2.5), avg(7) from people where member

select sum(score) as "Summe größer", count(*) as "select" from people

-- What cannot be computed on a row is NULL there; DuckDB would not answer at all.
-- duckdb: select avg(try_cast("größe" as integer)), count(try_cast("größe" as double)), count(*) from people
select avg(cast("größe" as integer)), count("größe"::double), count(*) from people

-- duckdb: select sum(age % nullif("odd name", 0)), avg(age // nullif("odd name", 0)) from people
select sum(age % "odd name"), avg(age // "odd name") from people

-- duckdb: select count(*) from people where age % nullif("odd name", 0) = 1 or try_cast("größe" as integer) = 3
select count(*) from people where age % "odd name" = 1 or cast("größe" as integer) = 3

-- Neither a number nor a date: true of nobody, and not worth a crash.
-- duckdb: select count(*) from people where false
select count(*) from people where height not in (1, 2, cast("größe" as date))
